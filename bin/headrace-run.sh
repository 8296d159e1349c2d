# Read by the scripts beside it: finds headrace, runs a tool, starts a server and stops it again.
# shellcheck shell=sh

home_dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
log_dir=${LOG_DIR:-$home_dir/logs}

find_headrace() {
    if [ -x "$home_dir/.venv/bin/headrace" ]; then
        headrace=$home_dir/.venv/bin/headrace
    elif command -v headrace >/dev/null 2>&1; then
        headrace=headrace
    else
        echo "$(basename -- "$0"): cannot find headrace" >&2
        echo "  why: there is no $home_dir/.venv/bin/headrace, and no headrace on PATH" >&2
        echo "  try: make -C $home_dir setup, or pip install headrace" >&2
        exit 1
    fi
}

# run_tool TOOL ARGUMENTS...
run_tool() {
    find_headrace
    exec "$headrace" "$@"
}

# start_server TOOL KIND OUTPUT USAGE ARGUMENTS...: in this process, or with -daemon as one of its own.
start_server() {
    tool=$1 kind=$2 output=$3 usage=$4
    shift 4
    daemon=
    while [ $# -gt 0 ]; do
        case $1 in
        -daemon) daemon=yes ;;
        -loggc) ;;
        -name) [ $# -gt 1 ] && shift ;;
        *) break ;;
        esac
        shift
    done
    if [ $# -eq 0 ]; then
        echo "USAGE: $0 $usage" >&2
        exit 1
    fi
    find_headrace
    if [ "$daemon" ]; then
        mkdir -p "$log_dir" || exit 1
        nohup "$headrace" "$tool" "$@" >>"$log_dir/$output" 2>&1 </dev/null &
        note_process "$kind" $!
    else
        note_process "$kind" $$
        exec "$headrace" "$tool" "$@"
    fi
}

# note_process KIND ID: so that stop_server finds it. A directory that cannot be written to is no reason not to start.
note_process() {
    { mkdir -p "$log_dir" && echo "$2" >"$log_dir/$1.$2.pid"; } 2>/dev/null || :
}

# stop_server KIND NAME: whatever start_server started here and is still running.
stop_server() {
    stopped=
    for file in "$log_dir/$1".*.pid; do
        [ -e "$file" ] || continue
        read -r id <"$file"
        if is_server "$id" && kill -s "${SIGNAL:-TERM}" "$id"; then
            stopped=yes
        fi
        rm -f "$file"
    done
    if [ -z "$stopped" ]; then
        echo "No $2 server to stop" >&2
        exit 1
    fi
}

# The operating system may have given the number to somebody else since.
is_server() {
    if [ -r "/proc/$1/cmdline" ]; then
        words=$(tr '\0' ' ' <"/proc/$1/cmdline")
    else
        words=$(ps -p "$1" -o args= 2>/dev/null)
    fi
    case $words in
    *server-start* | *rest-start* | *schema-registry-start* | *zookeeper*) return 0 ;;
    *) return 1 ;;
    esac
}
