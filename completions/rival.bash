# bash completion for rival. What is offered comes from `rival offer`.
_rival()
{
    local line=${COMP_LINE:0:COMP_POINT} i word offered
    local -a words=()
    # For bash a colon or "=" ends a word; for us --store=FILE and a run id with colons are one.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        ((i == COMP_CWORD)) && word=${line#"${line%%[![:space:]]*}"} # up to the cursor
        if [[ -z $line || $line == [[:space:]]* || ${#words[@]} == 0 ]]; then
            line=${line#"${line%%[![:space:]]*}"}
            words+=("$word")
        else
            words[-1]+=$word
        fi
        line=${line#"$word"}
    done
    word=${words[-1]##*[:=]} # what bash will replace
    local done=${words[-1]%"$word"}
    COMPREPLY=()
    while IFS= read -r offered; do
        case $offered in
        $'\t'files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        $'\t'folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        $'\t'input) [[ $word == @* ]] && mapfile -t COMPREPLY < <(compgen -P @ -f -- "${word#@}") ;;
        *) offered=${offered%%$'\t'*}; COMPREPLY+=("${offered#"$done"}") ;;
        esac
    done < <("${words[0]}" offer "${words[@]:1}" 2>/dev/null)
}
complete -F _rival rival
