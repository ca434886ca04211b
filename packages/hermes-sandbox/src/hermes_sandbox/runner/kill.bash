# Signals everything that belongs to a command, with builtins alone: no fork is needed where no fork is left.
#
# $1 the signal's number; $2 the mark in the environment of what the command started; $3 the command's process
# (0 when unknown); $4 for a shell: the prefix of its marks. The shell $3 itself is then spared, as are its children
# that carry another of its marks, and those named in $5. What a shell forks without a program of its own shows the
# mark that the shell began with, number 0, which tells nothing. Process 1 is never signalled, and 0 and 1 are no
# command's process: processes whose session began outside a container show 0 as their group. A process that just
# begins a program shows neither environment nor arguments; an orphan of that kind is counted, so that it is looked
# at again. Parents are signalled before their children as far as numbers tell: one that handles the signal shall not
# find its children dead before it. One that forks and ends between the listing and the look at it would hide its child:
# the listing is repeated for what is new, though not for ever, as in a storm of forks. Sets `alive` to the number of processes found.
signal_tree() {
  local signal=$1 mark=$2 root=$3 shell=$4 spare=" ${5-} " stat line pid before after entry marked listing new
  local -A parent=() other=() bare=() seen=()
  local -a hit=() rest variables # in the order of the indices
  for listing in 1 2 3 4; do
    new=''
    for stat in /proc/[0-9]*/stat; do
      [ -z "${seen[$stat]-}" ] || continue
      seen[$stat]=1 new=y
      line=''
      IFS= read -r -d '' line <"$stat"
      [ -n "$line" ] || continue
      pid=${line%% *}
      read -r -a rest <<<"${line##*) }"
      [ "$pid" != "$$" ] && [ "$pid" != 1 ] && [ "${rest[0]}" != Z ] && [ "${rest[0]}" != X ] || continue
      parent[$pid]=${rest[1]}
      variables=() marked=''
      mapfile -d '' -t variables <"/proc/$pid/environ"
      if [ ${#variables[@]} -eq 0 ] && ! IFS= read -r -d '' entry <"/proc/$pid/cmdline"; then bare[$pid]=1; fi
      for entry in "${variables[@]}"; do
        [[ $entry != HERMES_MARK=* ]] || marked=${entry#*=}
      done
      if [ -n "$mark" ] && [ "$marked" = "$mark" ]; then
        hit[$pid]=1
      elif [ -n "$shell" ]; then
        if [[ $spare == *" $pid "* || ($marked == "$shell"* && $marked != "${shell}0") ]]; then other[$pid]=1; fi
      elif [ "$root" -gt 1 ] && { [ "$pid" = "$root" ] || [ "${rest[2]}" = "$root" ] || [ "${rest[3]}" = "$root" ]; }; then
        hit[$pid]=1
      fi
    done
    [ -n "$new" ] || break
  done
  [ -z "$shell" ] || [ "$root" -le 1 ] || hit[$root]=1
  before=-1 after=${#hit[@]}
  while [ "$before" != "$after" ]; do
    before=$after
    for pid in "${!parent[@]}"; do
      [ -z "${hit[${parent[$pid]}]-}" ] || [ -n "${other[$pid]-}" ] || hit[$pid]=1
    done
    after=${#hit[@]}
  done
  [ -z "$shell" ] || unset "hit[$root]"
  [ "$root" -le 1 ] || [ -z "${hit[root]-}" ] || kill -s "$signal" "$root"
  for pid in "${!hit[@]}"; do [ "$pid" = "$root" ] || kill -s "$signal" "$pid"; done
  alive=${#hit[@]}
  for pid in "${!bare[@]}"; do
    [ -n "${parent[${parent[$pid]}]-}" ] || [ "${parent[$pid]}" = 0 ] || [ -n "${hit[$pid]-}" ] || alive=$((alive + 1))
  done
}
