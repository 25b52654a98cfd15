# Shell integration of blockpty for fish 3.6 and later.
#
# Lives here: the marks that say where a command begins and ends and when the line editor is ready.
# Does not know: what the engine makes of them. The wire form and the reasons are in ../README.md.
# host/shells/fish.py puts a header in front (__bp_n, the nonce) and writes the whole as a 0600 file that
# `fish -C` sources after the user's configuration; it is removed at the first authenticated mark.
#
# Habits: between two prompts no fork, no external program, no command substitution and no arithmetic (50 us each); every
# variable is set with -gu, so that nothing is ever exported; builtins are called as such, because a function of the user
# may have any name. Measured: a write 20 us, `test` 7, `set` 5.5, `switch` and a call 3: so it is `switch` that decides.
# fish itself keeps $status and $pipestatus around event handlers, and `switch` leaves them alone.

# Adding one would be (math ...). So the last two digits walk through tables, and only one step in fifty calculates.
# Leading zeros mean nothing in a mark. __bp_k says where c, the number of commands, stands in them; s is twice that
# while a command runs and one more afterwards, since every BEGIN has its END.
set -gu __bp_pairs
set -gu __bp_after
set -gu __bp_even
set -gu __bp_odd
for __bp_a in 0 1 2 3 4 5 6 7 8 9
    for __bp_b in 0 1 2 3 4 5 6 7 8 9
        set -a __bp_pairs $__bp_a$__bp_b
    end
end
for __bp_a in $__bp_pairs
    set -a __bp_after (builtin math "($__bp_a + 1) % 100 + 1")
    set -a __bp_even $__bp_pairs[(builtin math "$__bp_a * 2 % 100 + 1")]
    set -a __bp_odd $__bp_pairs[(builtin math "$__bp_a * 2 % 100 + 2")]
end
set -e __bp_a
set -e __bp_b

set -gu __bp_k 1
set -gu __bp_low_p 1
set -gu __bp_high_s 0
set -gu __bp_high_c 0
set -gu __bp_high_p 0
# The status of the last command; empty while one runs.
set -gu __bp_x
set -gu __bp_jobs
set -gu __bp_pwd
set -gu __bp_moved 1
set -gu __bp_narrow
set -gu __bp_ours
# What was copied last as the user's prompt, and the name of the copy.
set -gu __bp_copied
set -gu __bp_copy

# fish 4 writes OSC 133 by itself. Here is what stands around our marks, for a terminal that a person attaches. A word
# that holds an empty list vanishes.
set -gu __bp_133b
set -gu __bp_133c
set -gu __bp_133d
if builtin string match -qr '^[0-3]\.' -- $version
    set __bp_133b \e']133;B'\a
    set __bp_133c \e']133;C'\a
    set __bp_133d \e']133;D;'
end

# Adds what a hundred steps of a table are: they begin at 1 again.
function __bp_carry
    for name in __bp_high_$argv
        set $name (builtin math $$name + 1)
    end
end

# Writes the mark of kind $argv[1] with the extra fields $argv[2] (each with its leading semicolon).
function __bp_put
    set -l low __bp_odd
    switch "$__bp_x"
        case ''
            set low __bp_even
    end
    builtin printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a' $argv[1] $__bp_n $fish_pid \
        $__bp_high_s$$low[1][$__bp_k] $__bp_high_c$__bp_pairs[$__bp_k] $__bp_high_p$__bp_pairs[$__bp_low_p] "$argv[2]"
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

function __bp_move --on-variable PWD
    set __bp_moved 1
end

# A submitted line calls __bp_begun itself, as its first command: after this event fish still writes the window title and
# resets colours, which would be output otherwise. For a typed line there is no later place.
function __bp_begin --on-event fish_preexec
    # fish raises this event for blanks and comments as well; they are no commands.
    if not builtin string match -qr '^( __bp_begun; .*|\s*(#[^\n]*)?)$' -- $argv[1]
        switch $argv[1]
            case ' eval *' ' \\\\builtin cd *'
                # Submitted, where our files are not seen.
                __bp_open
            case '*'
                __bp_open ';o=1'
        end
    end
end

# The first command of a submitted line; $status is handed on. It switches to full job control: in a sourced file fish
# would leave its children in its own process group, and Ctrl-Z or a kill would hit both.
function __bp_begun
    set -l x $status
    if builtin status is-interactive-job-control
        set __bp_jobs 1
        builtin status job-control full
    end
    __bp_open
    return $x
end

# The output begins; the argument says that the line is another than a submitted one.
function __bp_open
    switch "$__bp_x"
        case ''
        case '*'
            set __bp_x
            set __bp_k $__bp_after[$__bp_k]
            switch $__bp_k
                case 1
                    __bp_carry s c
                case 51
                    __bp_carry s
            end
            builtin printf '%s\e]7717;__BEGIN__;n=%s;i=%s;s=%s;c=%s;p=%s%s\a' "$__bp_133c" $__bp_n $fish_pid \
                $__bp_high_s$__bp_even[$__bp_k] $__bp_high_c$__bp_pairs[$__bp_k] $__bp_high_p$__bp_pairs[$__bp_low_p] "$argv"
    end
end

# Last in a submitted line: the output is over. Before fish_postexec, fish 4 writes an OSC 133 of its own.
function __bp_over
    set -l x $status
    __bp_put __OUT_END__
    return $x
end

function __bp_end --on-event fish_postexec
    switch "$__bp_x"
        case ''
            set __bp_x $status
            switch "$__bp_jobs"
                case 1
                    set __bp_jobs
                    builtin status job-control interactive
            end
            switch "$__bp_moved"
                case ''
                    builtin printf '\e]7717;__END__;n=%s;i=%s;s=%s;c=%s;p=%s;x=%s\a%s' $__bp_n $fish_pid \
                        $__bp_high_s$__bp_odd[$__bp_k] $__bp_high_c$__bp_pairs[$__bp_k] \
                        $__bp_high_p$__bp_pairs[$__bp_low_p] $__bp_x $__bp_133d$__bp_x\a\e']133;A'\a
                case '*'
                    __bp_put __END__ ";x=$__bp_x"
                    set __bp_moved
                    if builtin test "$PWD" != "$__bp_pwd"
                        __bp_cwd
                    end
                    builtin printf '%s' $__bp_133d$__bp_x\a\e']133;A'\a
            end
            __bp_listen
    end
end

# The next prompt is a fresh one: fish calls the function fish_prompt for every drawing, but raises this event only then.
# Handlers are called in the order in which they were defined, and one of them may define fish_prompt anew at each prompt.
# So ours is defined again after each command, which makes it the last, and asks whether fish_prompt is still ours.
function __bp_listen
    function __bp_fresh --on-event fish_prompt
        switch "$__bp_x"
            case ''
                __bp_end
        end
        set __bp_ours
        builtin emit __bp_ask 1
        switch "$__bp_ours"
            case ''
                __bp_wrap
        end
        __bp_next
    end
end

# The prompt to come has the next number.
function __bp_next
    set __bp_low_p $__bp_after[$__bp_low_p]
    switch $__bp_low_p
        case 1
            __bp_carry p
    end
end

# Ctrl-C at something typed: nothing ran and $status is what it was, so there is no END. fish only draws the old prompt
# again, mark and all; the second drawing runs fish_prompt, and so makes it a fresh one.
# A syntax error (fish_posterror) stays on the line to be mended: not a fresh prompt, and no mark.
function __bp_cancel --on-event fish_cancel
    __bp_next
    builtin commandline -f repaint
end

# The engine's own key for an empty line: fish 3 turns Ctrl-C into a signal, and loses one that comes while it draws.
function __bp_clear
    __bp_next
    # In the command mode of vi the next command would be read as keys.
    switch "$fish_key_bindings"
        case '*_vi_*' '*_hybrid_*'
            set -g fish_bind_mode insert
    end
    builtin commandline ''
    builtin commandline -f cancel repaint
end
for __bp_a in default insert visual replace replace_one
    builtin bind -M $__bp_a \x1d __bp_clear
end
set -e __bp_a

# Last in fish_prompt. The terminal is in raw mode since before the event fish_prompt.
function __bp_ready
    builtin printf '%s\e]7717;__PROMPT__;n=%s;i=%s;s=%s;c=%s;p=%s;x=%s\a' "$__bp_133b" $__bp_n $fish_pid \
        $__bp_high_s$__bp_odd[$__bp_k] $__bp_high_c$__bp_pairs[$__bp_k] $__bp_high_p$__bp_pairs[$__bp_low_p] $__bp_x
end

# On fewer than four columns fish runs the prompt and draws nothing of it, nor of what is typed.
function __bp_width --on-variable COLUMNS
    set __bp_narrow
    if builtin test "$COLUMNS" -lt 4 2>/dev/null
        set __bp_narrow 1
    end
end

# Takes the user's fish_prompt as it is and puts our mark behind it. Each gets a name of its own: who keeps a copy of ours
# under another name, as a Python environment does, calls the one that it replaced.
function __bp_wrap
    set -l user
    if not builtin functions -q fish_prompt
        set user __bp_default_prompt
    else
        # Such a copy given back, or these hooks once more: it names what it wraps. One that is defined anew for each prompt
        # has its copy already.
        set -l text (builtin functions fish_prompt)
        set user (builtin string match -r '__bp_prompt_\d+|__bp_default_prompt' -- $text)[1]
        if builtin test -z "$user" -a "$text" = "$__bp_copied"
            set user $__bp_copy
        else if builtin test -z "$user"
            set -l number 1
            while builtin functions -q __bp_prompt_$number
                set number (builtin math $number + 1)
            end
            set user __bp_prompt_$number
            builtin functions -c fish_prompt $user
            set __bp_copied "$text"
            set __bp_copy $user
        end
    end
    # The user's prompt first and nothing before it, because it wants to see $status and $pipestatus. Asked whether it is
    # still ours, which comes with an argument, it answers.
    function fish_prompt --on-event __bp_ask --inherit-variable user
        switch "$argv"
            case ''
                $user
                __bp_ready
                switch "$__bp_narrow"
                    case 1
                        __bp_ready >/dev/tty
                end
            case '*'
                set __bp_ours 1
        end
    end
end

function __bp_default_prompt
    builtin printf '> '
end

# A history of this conversation's own that no file keeps: fish can only name one in the user's directory.
set -gu fish_history ''
__bp_width
__bp_wrap
__bp_listen
__bp_put __HELLO__ ";v=1;sh=fish;sv="(builtin string replace -ar '[^0-9A-Za-z.-]' _ -- $version)";f=preexec,postexec,prompt"
__bp_end
