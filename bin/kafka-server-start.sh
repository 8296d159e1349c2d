#!/bin/sh
. "$(dirname -- "$0")/headrace-run.sh"
start_server server-start kafka kafkaServer.out \
    "[-daemon] server.properties [--override property=value]*" "$@"
