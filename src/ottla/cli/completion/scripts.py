"""Scripts that connect a shell to `ottla __complete`."""

import argparse

from ottla.cli.error import OK

BASH = """\
# Completion of ottla in bash: eval "$(ottla completion bash)"
_ottla() {
    local reply tab=$'\\t' line="${COMP_LINE:0:COMP_POINT}" typed="${COMP_WORDS[COMP_CWORD]}"
    # Bash cuts words at = and :, which are parts of ours, and wants what comes behind them.
    case "$typed" in "="|":") typed="" ;; esac
    local current="${line##* }"
    local prefix="${current%"$typed"}"
    COMPREPLY=()
    while IFS= read -r reply; do
        if [ "$reply" = ":files" ]; then
            compopt -o default
        else
            reply="${reply%%$tab*}"
            COMPREPLY+=("${reply#"$prefix"}")
        fi
    done < <("${COMP_WORDS[0]}" __complete --line "$line" 2>/dev/null)
}
complete -F _ottla ottla
"""

ZSH = """\
#compdef ottla
# Completion of ottla in zsh: eval "$(ottla completion zsh)"
_ottla() {
    local reply tab=$'\\t'
    local -a found
    while IFS= read -r reply; do
        if [[ "$reply" == ":files" ]]; then _files; return; fi
        reply="${reply//:/\\\\:}"
        found+=("${reply/$tab/:}")
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe 'ottla' found
}
if [[ "$funcstack[1]" == "_ottla" ]]; then _ottla "$@"; else compdef _ottla ottla; fi
"""

FISH = """\
# Completion of ottla in fish: ottla completion fish > ~/.config/fish/completions/ottla.fish
function __ottla_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    test (count $current) -eq 0; and set current ''
    set -l found ($before[1] __complete $before[2..-1] $current 2>/dev/null)
    if test "$found" = ":files"
        __fish_complete_path $current
    else if test (count $found) -gt 0
        printf '%s\\n' $found
    end
end
complete -c ottla -f -a '(__ottla_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def print_script(options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    print(SCRIPTS[options.shell], end="")
    return OK
