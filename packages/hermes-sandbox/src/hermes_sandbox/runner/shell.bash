# What an interactive bash without a terminal reads first, to serve as a shell that is driven line by line.
#
# It is interactive so that a command can be aborted as by Ctrl-C in a terminal: on SIGUSR1 it interrupts itself
# between two commands, gives up the current line with all loops and functions, and reads the next line.
# Commands are sourced, and only they write to its output: what an interactive shell itself says between them (prompts,
# what a `PROMPT_COMMAND` prints, the lines that it reads under `set -v`) goes nowhere.
PS1= PS2= PS4='+ ' PROMPT_COMMAND=
unset HISTFILE MAILCHECK
set +o history +H +m
exec {__hermes_out}>&1 >/dev/null 2>&1
# Ends a command: $1 a word that no command could know, $2 its exit code, $3 the number of the next command; $4 is given
# when the command was sent to a folder for itself: it goes back, unless it went elsewhere of its own will. Told twice
# of the same end, it does nothing. The report is written by few builtins, for each writes by itself, and what the end is
# known by comes first.
__hermes_end() {
  [ "$__hermes_turn" != "$3" ] || return "$2"
  [ -z "${4-}" ] || [ "$PWD" != "$__hermes_there" ] || builtin cd -- "$__hermes_from"
  {
    builtin printf '%s%s %s %s\0' "$1" "$2" "$$" "$PWD"
    builtin declare -px
    builtin jobs -p
    builtin printf '%s' "$1"
  } >&"$__hermes_out"
  __hermes_turn=$3 HERMES_MARK=$__hermes_marks.$3 __hermes_status=$2
  return "$2"
}
# Begins a command: it finds the options of the one before, and its exit code as `$?`.
__hermes_begin() {
  [ -z "$__hermes_options" ] || { set "-$__hermes_options"; __hermes_options=; }
  return "$__hermes_status"
}
# Between two commands their options -e and -x are off. Under `set -e` a command may end with a failure that bash overlooks
# (`! true`, `false && true`), but that of the `.` which ran it would not be overlooked; and the report shall not be traced
# into itself. Not for a file that the command sources itself.
__hermes_return() {
  [[ ${#BASH_SOURCE[@]} -gt 1 || $- != *[ex]* ]] || { __hermes_options=${-//[!ex]/}; set +ex; }
}
exit() { builtin exit "$@" 2>/dev/null; }
trap '{ builtin printf "\0hermes exit\0%s\0" "$PWD"; builtin declare -px; } >&"$__hermes_out"' EXIT
trap 'builtin kill -INT "$$"' USR1
trap '{ __hermes_return; } 2>/dev/null' RETURN
__hermes_options= __hermes_status=0 __hermes_turn=0 __hermes_marks=${HERMES_MARK%.*}
