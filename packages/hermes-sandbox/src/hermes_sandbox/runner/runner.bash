# The resident runner: one bash per sandbox (and user) that forks every command.
#
#   stdin    requests: a line with a byte count, then that many bytes of bash code, run in this shell
#   stdout   the output of all commands, in blocks
#   stderr   events, one a line, each written whole:
#            R PID                     ready
#            P ID PID JOB OUT ERR      the command started; the pids of who waits for it and of its pumps
#            D ID STREAM COUNT         the next COUNT bytes of stdout are output of that command (stream 1 or 2)
#            E ID STREAM               nothing holds that stream open any more
#            X ID STATUS SIGNALED OOM  the command ended
#            A ID COUNT                so many bytes of its standard input were passed on; -1: it does not read
#            B                         the order of the blocks is lost; nothing after this can be trusted
#            K ID COUNT                the answer to `slay`, `discard`, `probe` and `holds`
#
# A block and its D line are written under a lock, so that both come in the same order; the lock is a pipe holding
# one byte. Output goes through pipes alone: no file is written, so a full or read-only disk does no harm.

exec {requests}<&0 {blocks}>&1 {events}>&2 </dev/null >/dev/null 2>/dev/null
[ -n "${LC_ALL+set}" ] && locale="export LC_ALL=${LC_ALL@Q}" || locale='unset LC_ALL'
export -n LC_ALL
LC_ALL=C IFS=$' \t\n'
trap '' PIPE
printf hermes-runner >/proc/self/comm # so that `pkill bash` spares it
exec {lock}<> <(:) {never}<> <(:)
printf x >&"$lock"
declare -A inputs=()

lock() { read -r -N 1 -u "$lock" _; } # -u leaves descriptor 0, which `discard` looks at, alone
unlock() { printf x >&"$lock"; }

# Passes what it reads on as blocks: a few bytes one by one, which needs no fork, the rest through dd. Never by a `read`
# with a timeout: when the time is up, bash may drop a byte that it has just read. SIGTERM ends it, once what it has
# in hand is passed on.
pump() {
  local id=$1 stream=$2 head byte rest count nul ended= more= plain= idle=
  local -a flood=(count=1)
  trap '[[ -z $idle || -v head ]] || exit 0; ended=y' TERM
  while [[ -z $ended ]]; do
    head='' nul=''
    if [[ -z $more ]]; then
      unset -v head
      idle=y
      IFS= read -r -d '' -n 1 head || break
      idle=
      [[ -n $head ]] || nul=y
      while [[ -z $nul && ${#head} -lt 48 ]] && read -r -t 0; do
        IFS= read -r -d '' -n 1 byte || { ended=y; break; }
        head+=$byte
        [[ -n $byte ]] || nul=y
      done
    fi
    count=$((${#head} + ${#nul}))
    lock
    printf %s "$head" >&"$blocks"
    [ -z "$nul" ] || printf '\0' >&"$blocks"
    more=
    if [[ -z $ended ]] && read -r -t 0; then
      # The lock is held, so dd must not wait: it reads once, or by a descriptor of its own without blocking.
      rest=$(dd "${flood[@]}" bs=65536 2>&1 >&"$blocks")
      # Killed, dd did not tell how much it wrote: from here on nobody knows whose the bytes of stdout are.
      [ $? -le 1 ] || { printf 'B\n' >&"$events"; return; }
      rest=${rest##*$'\n'}
      rest=${rest%% *}
      if [[ $rest == *[!0-9]* ]]; then rest=0 flood=(count=1); fi # not GNU's dd
      if [ "${rest:=0}" -ge 32768 ]; then
        more=y
        [ ${#flood[@]} -gt 1 ] || [ -n "$plain" ] || flood=(if=/dev/stdin iflag=nonblock count=32) plain=y
      fi
      count=$((count + rest))
    fi
    [ "$count" -eq 0 ] || printf 'D %s %s %s\n' "$id" "$stream" "$count" >&"$events"
    unlock
    if [ -n "$more" ] && ! read -r -t 0; then more=; fi
  done
  printf 'E %s %s\n' "$id" "$stream" >&"$events"
}

# Finds the file in which the kernel counts whom it killed here for want of memory, and sets `oom_file`. A container with
# a view of its own sees its group at the top, others by its path. Version 1 has a tree for memory, version 2 one for all.
find_oom_file() {
  local groups=$1 own=$2 controllers path file
  oom_file=/dev/null
  while IFS=: read -r _ controllers path; do
    case ,$controllers, in
      *,memory,*) set -- "$groups/memory$path/memory.oom_control" "$groups/memory/memory.oom_control" ;;
      ,,) set -- "$groups$path/memory.events" "$groups/memory.events" ;;
      *) continue ;;
    esac
    for file; do
      if [ "$oom_file" = /dev/null ] && [ -r "$file" ]; then oom_file=$file; fi
    done
  done <"$own"
}

# Counts in `oom` how often the kernel killed something here for want of memory.
oom_kills() {
  local name value
  oom=0
  while read -r name value; do
    [ "$name" != oom_kill ] || oom=$value
  done <"$oom_file"
}

# Runs one command and reports its end: id, folder, "merge" or "", argv. Standard input is inherited.
job() {
  local id=$1 cwd=$2 merge=$3 status signaled=0 oom before notice= out err pumps keeper line=
  shift 3
  { exec {notice}<<<x; } && exec 2>"/proc/self/fd/$notice" && read -r _ <&"$notice"
  trap - PIPE
  oom_kills
  before=$oom
  exec {out}> >(pump "$id" 1)
  pumps=$!
  if [ -n "$merge" ]; then
    exec {err}>&"$out"
  else
    exec {err}> >(pump "$id" 2)
    pumps="$pumps $!"
  fi
  set -m # a process group of its own, and signals as a command expects them
  keeper=$BASHPID
  (
    printf 'P %s %s %s %s\n' "$id" "$BASHPID" "$keeper" "$pumps" >&"$events"
    # Only here: what serves the command must not carry its mark, nor depend on its variables.
    { eval "$locale"; [ ${#variables[@]} -eq 0 ] || export -- "${variables[@]}"; } 2>/dev/null
    exec 2>&"$err" >&"$out" {out}>&- {err}>&- {notice}<&- {blocks}>&- {events}>&- {lock}>&- {never}>&- 255>&-
    cd -- "$cwd" || exit 126
    unset OLDPWD
    exec -- "$@"
  ) <&0 & # said explicitly, for without job control bash would give it /dev/null
  set +m
  exec {out}>&- {err}>&- <&-
  wait "$!"
  status=$?
  # There are 64 signals. Beyond is bash's own word that it could not fork.
  if [ "$status" -gt 128 ] && [ "$status" -le 192 ]; then
    jobs >/dev/null
    # Bash notes on its standard error how a child died, "Killed" or "Exit 137", but not when it was by one of
    # SIGINT, SIGPIPE and SIGTERM.
    if [[ $status == 130 || $status == 141 || $status == 143 || -z $notice ]]; then
      signaled=1
    elif read -r -t 0 -u "$notice" && IFS= read -r -t 9 -u "$notice" line && [[ $line != *Exit* ]]; then
      signaled=1
    fi
    oom_kills
  fi
  printf 'X %s %s %s %s\n' "$id" "$status" "$signaled" "$((oom - before))" >&"$events"
}

# Closes what belongs to the runner alone.
let_go() {
  local fd
  exec {requests}<&-
  for fd in "${inputs[@]}"; do exec {fd}>&-; done
}

# A request: run a command that reads nothing. What it is to find in its environment stands in `variables`.
start() {
  (
    let_go
    job "$@"
  ) &
}

# A request: run a command whose standard input comes by `feed`.
start_fed() {
  local writer id=$1
  exec {writer}> >(
    let_go
    shopt -s lastpipe # the job runs in this process
    pass_input "$id" | job "$@"
  )
  inputs[$id]=$writer
}

# Passes blocks of input on to a command, at its pace.
pass_input() {
  local id=$1 size broken=
  while read -r size; do
    [ -n "$broken" ] || dd bs="$size" count=1 iflag=fullblock || broken=y
    [ -z "$broken" ] || size=-1
    printf 'A %s %s\n' "$id" "$size" >&"$events"
    [ -z "$broken" ] || break
  done
}

# A request: pass on the bytes that follow it.
feed() {
  local to=${inputs[$1]-}
  [ -z "$to" ] || printf '%s\n' "$2" >&"$to"
  dd bs="$2" count=1 iflag=fullblock <&"$requests" >&"${to:-1}"
}

# A request: the command's standard input ends here.
end_input() {
  local to=${inputs[$1]-}
  unset "inputs[$1]"
  [ -z "$to" ] || exec {to}>&-
}

# A request: drop what background children still write: id, "force" or "" or "look", pumps. Answers how many pumps were
# left alone, because they have output to pass on, or its end. With "look" it drops nothing.
discard() {
  local id=$1 force=$2 pump both pipe busy=0
  shift 2
  for pump; do
    # To read and write: opened to read alone, a pipe whose writers are gone would block.
    { exec {both}<>"/proc/$pump/fd/0"; } || continue
    exec {pipe}<"/proc/self/fd/$both" {both}>&-
    if [ "$force" != force ] && read -r -t 0 -u "$pipe"; then
      busy=$((busy + 1))
    elif [ "$force" != look ]; then
      # Again and again: a signal just before it began to read would not wake it.
      while living "$pump"; do
        kill -s TERM "$pump"
        read -r -t 0.005 -u "$never" _
      done
      cat <&"$pipe" >/dev/null &
    fi
    exec {pipe}<&-
  done
  printf 'K %s %s\n' "$id" "$busy" >&"$events"
}

# Whether a process is there and no zombie.
living() {
  local line=
  IFS= read -r -d '' line <"/proc/$1/stat"
  line=${line##*) }
  [ -n "$line" ] && [ "${line%% *}" != Z ] && [ "${line%% *}" != X ]
}

# A request: tell whether a process is there.
probe() {
  local there=0
  living "$2" && there=1
  printf 'K %s %s\n' "$1" "$there" >&"$events"
}

# A request: tell whether a process has a descriptor open.
holds() {
  local open=0
  [ -h "/proc/$2/fd/$3" ] && open=1
  printf 'K %s %s\n' "$1" "$open" >&"$events"
}

# A request: signal a command's processes.
slay() {
  local id=$1 alive
  shift
  signal_tree "$@"
  printf 'K %s %s\n' "$id" "$alive" >&"$events"
}

find_oom_file /sys/fs/cgroup /proc/self/cgroup
printf 'R %s\n' "$$" >&"$events"
while read -r size <&"$requests"; do
  if [ "$size" -le 2048 ]; then
    IFS= read -r -N "$size" code <&"$requests"
  else
    code=$(dd bs="$size" count=1 iflag=fullblock <&"$requests")
  fi
  variables=()
  eval "$code"
done
