# What `blockpty shell-init fish` prints, behind a line that sets __blockpty_dir: a shell that blockpty has not started
# takes its hooks when an engine offers them, in a file of mode 0600 that is named after the shell's process.
#
# It looks for an offer at every prompt and at a key of our own. It prints nothing, and sets no prompt, trap or exported
# name.

if status is-interactive; and not set -q __bpty_n; and test "$__blockpty_pid" != "$fish_pid" -a -d "$__blockpty_dir"
    set -gu __blockpty_pid $fish_pid
    set -gu __blockpty_taken

    # fish itself keeps $status around it; only a file of this user is read.
    function __blockpty_prompt --on-event fish_prompt
        if builtin test -O $__blockpty_dir/$fish_pid.offer
            source $__blockpty_dir/$fish_pid.offer
            # This prompt is the first one with marks.
            switch "$__blockpty_taken"
                case 1
                    set __blockpty_taken
                    __bpty_next
            end
        end
    end

    # The engine's key; what a person has typed stays on the line.
    function __blockpty_key
        __blockpty_prompt
        builtin commandline -f repaint
    end
    for __blockpty_map in default insert visual
        bind -M $__blockpty_map \x1e\x1f __blockpty_key
    end
    set -e __blockpty_map
    echo fish >$__blockpty_dir/$fish_pid
end
