# Shell integration of blockpty for fish 3.6 and later.
#
# Lives here: the marks that say where a command begins and ends and when the line editor is ready.
# Does not know: what the engine makes of them. The wire form and the reasons are in ../README.md.
# host/shells/fish.py puts a header in front (__bp_n, the nonce) and writes the whole as a 0600 file that
# `fish -C` sources after the user's configuration; it is removed at the first authenticated mark.
#
# Habits: no fork, no external program, and one command substitution at a prompt (20 to 60 us each); every variable is set
# with -gu, so that nothing is ever exported; builtins are called as such, because a function of the user may have any
# name. fish itself keeps $status and $pipestatus around event handlers.

# Adding one would be (math ...), which costs more than all the rest of a prompt. So the last two digits walk through a
# table, and only one step in a hundred calculates. Leading zeros mean nothing in a mark. What every command needs is
# written out where it is needed: a call takes 3 us, and `switch` half of what a test does.
set -gu __bp_pairs
set -gu __bp_after
for __bp_a in 0 1 2 3 4 5 6 7 8 9
    for __bp_b in 0 1 2 3 4 5 6 7 8 9
        set -a __bp_pairs $__bp_a$__bp_b
    end
end
for __bp_a in $__bp_pairs
    set -a __bp_after (builtin math "$__bp_a + 2")
end
set __bp_after[100] 1
set -e __bp_a
set -e __bp_b

set -gu __bp_low_s 1
set -gu __bp_low_c 1
set -gu __bp_low_p 1
set -gu __bp_high_s 0
set -gu __bp_high_c 0
set -gu __bp_high_p 0
set -gu __bp_s 0
set -gu __bp_c 0
set -gu __bp_p 0
set -gu __bp_x 0
set -gu __bp_pwd
set -gu __bp_fresh 1
set -gu __bp_file
set -gu __bp_running
set -gu __bp_jobs

# fish 4 writes OSC 133 by itself. Here is what stands around our marks, for a terminal that a person attaches.
set -gu __bp_133
set -gu __bp_133b
set -gu __bp_133c
if builtin string match -qr '^[0-3]\.' -- $version
    set __bp_133 1
    set __bp_133b \e']133;B'\a
    set __bp_133c \e']133;C'\a
end

# Adds what a hundred steps of the table are: they begin at 1 again.
function __bp_carry
    set -l high __bp_high_$argv[1]
    set $high (builtin math $$high + 1)
end

# Writes $argv[3], then the mark of kind $argv[1] with the extra fields $argv[2] (each with its leading semicolon).
function __bp_put
    builtin printf '%s\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a' \
        "$argv[3]" $argv[1] $__bp_n $fish_pid $__bp_s $__bp_c $__bp_p "$argv[2]"
end

# The working directory, percent-encoded; in pieces of 300 characters, so that each mark stays below 512.
function __bp_cwd
    set __bp_pwd $PWD
    set -l encoded (builtin string escape --style=url -- $PWD | builtin string replace -a '~' %7E)
    set -l length (builtin string length -- $encoded)
    if builtin test $length -le 300
        __bp_put __CWD__ ";d=$encoded"
    else
        set -l pieces (builtin math "ceil($length / 300)")
        set -l k 1
        while builtin test $k -le $pieces
            set -l from (builtin math "($k - 1) * 300 + 1")
            __bp_put __CWD__ ";d=$k/$pieces:"(builtin string sub -s $from -l 300 -- $encoded)
            set k (builtin math $k + 1)
        end
    end
end

# A submitted line calls __bp_begun itself, as its first command: after this event fish still writes the window title and
# resets colours, which would be output otherwise. For a typed line there is no later place.
function __bp_begin --on-event fish_preexec
    # fish raises this event for blanks and comments as well; they are no commands.
    if not builtin string match -qr '^( __bp_begun; .*|\s*(#[^\n]*)?)$' -- $argv[1]
        __bp_begun typed
    end
end

# The output begins; $status is handed on. For a submitted line, which calls this without arguments, also job control:
# in a sourced file fish would leave its children in its own process group, and Ctrl-Z or a kill would hit both.
function __bp_begun
    set -l x $status
    if builtin test -z "$argv"; and builtin status is-interactive-job-control
        set __bp_jobs 1
        builtin status job-control full
    end
    if builtin test -z "$__bp_running"
        set __bp_running 1
        set __bp_low_s $__bp_after[$__bp_low_s]
        switch $__bp_low_s
            case 1
                __bp_carry s
        end
        set __bp_s $__bp_high_s$__bp_pairs[$__bp_low_s]
        set __bp_low_c $__bp_after[$__bp_low_c]
        switch $__bp_low_c
            case 1
                __bp_carry c
        end
        set __bp_c $__bp_high_c$__bp_pairs[$__bp_low_c]
        builtin printf '%s\e]7717;__BEGIN__;n=%s;i=%s;s=%s;c=%s;p=%s\a' \
            "$__bp_133c" $__bp_n $fish_pid $__bp_s $__bp_c $__bp_p
    end
    return $x
end

# Last in a submitted line: the output is over. Before fish_postexec, fish 4 writes an OSC 133 of its own.
function __bp_over
    set -l x $status
    __bp_put __OUT_END__
    return $x
end

function __bp_end --on-event fish_postexec
    set __bp_x $status
    set __bp_running
    if builtin test -n "$__bp_jobs"
        set __bp_jobs
        builtin status job-control interactive
    end
    set __bp_low_s $__bp_after[$__bp_low_s]
    switch $__bp_low_s
        case 1
            __bp_carry s
    end
    set __bp_s $__bp_high_s$__bp_pairs[$__bp_low_s]
    set -l after
    if builtin test -n "$__bp_133"
        set after \e"]133;D;$__bp_x"\a\e']133;A'\a
    end
    if builtin test "$PWD" = "$__bp_pwd"
        builtin printf '\e]7717;__END__;n=%s;i=%s;s=%s;c=%s;p=%s;x=%s\a%s' \
            $__bp_n $fish_pid $__bp_s $__bp_c $__bp_p $__bp_x "$after"
    else
        __bp_put __END__ ";x=$__bp_x"
        __bp_cwd
        builtin printf %s "$after"
    end
    # Somebody defined fish_prompt anew: then it comes from another file, or from none.
    if builtin test (builtin functions --details fish_prompt) != "$__bp_file"
        __bp_wrap
    end
end

# Ctrl-C at something typed: nothing ran and $status is what it was, so there is no END. fish only draws the old prompt
# again, mark and all; the second drawing runs fish_prompt, and so makes it a fresh one.
# A syntax error (fish_posterror) stays on the line to be mended: not a fresh prompt, and no mark.
function __bp_cancel --on-event fish_cancel
    set __bp_fresh 1
    builtin commandline -f repaint
end

# The engine's own key for an empty line: fish 3 turns Ctrl-C into a signal, and loses one that comes while it draws.
function __bp_clear
    set __bp_fresh 1
    builtin commandline ''
    builtin commandline -f cancel repaint
end
for __bp_a in default insert visual replace replace_one
    builtin bind -M $__bp_a \x1d __bp_clear
end
set -e __bp_a

# fish calls the function fish_prompt for every drawing, but raises this event for a fresh prompt only.
function __bp_fresh_prompt --on-event fish_prompt
    set __bp_fresh 1
end

# Last in fish_prompt. The terminal is in raw mode since before the event above.
function __bp_ready
    if builtin test -n "$__bp_fresh"
        set __bp_fresh
        set __bp_low_p $__bp_after[$__bp_low_p]
        switch $__bp_low_p
            case 1
                __bp_carry p
        end
        set __bp_p $__bp_high_p$__bp_pairs[$__bp_low_p]
    end
    builtin printf '%s\e]7717;__PROMPT__;n=%s;i=%s;s=%s;c=%s;p=%s;x=%s\a' \
        "$__bp_133b" $__bp_n $fish_pid $__bp_s $__bp_c $__bp_p $__bp_x
end

# Takes the user's fish_prompt as it is and puts our mark behind it.
function __bp_wrap
    if builtin functions -q fish_prompt
        builtin functions -e __bp_user_prompt
        builtin functions -c fish_prompt __bp_user_prompt
    else
        function __bp_user_prompt
            builtin printf '> '
        end
    end
    # The user's prompt first and nothing before it, because it wants to see $status and $pipestatus.
    function fish_prompt
        __bp_user_prompt
        __bp_ready
    end
    set __bp_file (builtin functions --details fish_prompt)
end

# A history of this conversation's own that no file keeps: fish can only name one in the user's directory.
set -gu fish_history ''
__bp_wrap
__bp_put __HELLO__ ";v=1;sh=fish;sv="(builtin string replace -ar '[^0-9A-Za-z.-]' _ -- $version)";f=preexec,postexec,prompt"
__bp_end
