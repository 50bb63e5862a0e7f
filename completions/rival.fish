# fish completion for rival. What is offered comes from `rival offer`.
function __rival_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] offer $words[2..-1] 2>/dev/null)
        switch $line
            case \tfiles
                __fish_complete_path (commandline -ct)
            case \tfolders
                __fish_complete_directories (commandline -ct)
            case \tinput
                if string match -q '@*' -- (commandline -ct)
                    for file in (__fish_complete_path (string sub -s 2 -- (commandline -ct)))
                        echo @$file
                    end
                end
            case '*'
                echo $line
        end
    end
end
complete -c rival -f -a '(__rival_complete)'
