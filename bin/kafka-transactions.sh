#!/bin/sh
. "$(dirname -- "$0")/headrace-run.sh"
run_tool transactions "$@"
