#!/bin/sh
# The worked example in README.md is the file that the tests build: word for word.
# usage: readme.sh SOURCE-FOLDER
set -eu
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$1/README.md" |
    diff - "$1/tests/plugin/my_softmax.c"
