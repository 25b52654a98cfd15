# Shell integration of blockpty for fish 3.6 and later.
#
# It writes the marks that say where a command begins and ends and when the line editor is ready. What the engine makes
# of them is not known here. The wire form and the reasons are in ../README.md.
#
# host/shells/plans.py puts a header in front (__bpty_n, the nonce) and writes the whole as a 0600 file that
# `fish -C` sources after the user's configuration; it is removed at the first authenticated mark.
#
# Rules: between two prompts no fork, no external program, no command substitution and no arithmetic (50 us each); every
# variable is set with -gu, so that nothing is ever exported; builtins are called as such, because a function of the user
# may have any name. Measured: a write 20 us, `test` 7, `set` 5.5, `switch` and a call 3: so it is `switch` that decides.
# fish itself keeps $status and $pipestatus around event handlers, and `switch` leaves them alone.

# Adding one would be (math ...). So the last two digits walk through tables, and only one step in fifty calculates.
# Leading zeros mean nothing in a mark. __bpty_k says where c, the number of commands, stands in them; s is twice that
# while a command runs and one more afterwards, since every BEGIN has its END.
set -gu __bpty_pairs
set -gu __bpty_after
set -gu __bpty_even
set -gu __bpty_odd
for __bpty_a in 0 1 2 3 4 5 6 7 8 9
    for __bpty_b in 0 1 2 3 4 5 6 7 8 9
        set -a __bpty_pairs $__bpty_a$__bpty_b
    end
end
for __bpty_a in $__bpty_pairs
    set -a __bpty_after (builtin math "($__bpty_a + 1) % 100 + 1")
    set -a __bpty_even $__bpty_pairs[(builtin math "$__bpty_a * 2 % 100 + 1")]
    set -a __bpty_odd $__bpty_pairs[(builtin math "$__bpty_a * 2 % 100 + 2")]
end
set -e __bpty_a
set -e __bpty_b

set -gu __bpty_k 1
set -gu __bpty_low_p 1
set -gu __bpty_high_s 0
set -gu __bpty_high_c 0
set -gu __bpty_high_p 0
# The status of the last command; empty while one runs.
set -gu __bpty_x
set -gu __bpty_jobs
set -gu __bpty_pwd
set -gu __bpty_moved 1
set -gu __bpty_narrow
set -gu __bpty_ours
# What was copied last as the user's prompt, and the name of the copy.
set -gu __bpty_copied
set -gu __bpty_copy
# Whether the line was loaded by the engine's key, as a field of a mark; the text that such a line evaluates.
set -gu __bpty_l
set -gu __bpty_h

# fish 4 writes OSC 133 by itself. Here is what stands around our marks, for a terminal that a person attaches. A word
# that holds an empty list vanishes.
set -gu __bpty_133b
set -gu __bpty_133c
set -gu __bpty_133d
# The field of __END__ that says so of the end of a command.
set -gu __bpty_own ';d=1'
# The field of __BEGIN__ that says that fish 4 draws no title.
set -gu __bpty_bare
if builtin string match -qr '^[0-3]\.' -- $version
    set __bpty_133b \e']133;B'\a
    set __bpty_133c \e']133;C'\a
    set __bpty_133d \e']133;D;'
    set __bpty_own ''
end

# Adds what a hundred steps of a table are: they begin at 1 again.
function __bpty_carry
    for name in __bpty_high_$argv
        set $name (builtin math $$name + 1)
    end
end

# Writes the mark of kind $argv[1] with the extra fields $argv[2] (each with its leading semicolon).
function __bpty_put
    set -l low __bpty_odd
    switch "$__bpty_x"
        case ''
            set low __bpty_even
    end
    builtin printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a' $argv[1] $__bpty_n $fish_pid \
        $__bpty_high_s$$low[1][$__bpty_k] $__bpty_high_c$__bpty_pairs[$__bpty_k] $__bpty_high_p$__bpty_pairs[$__bpty_low_p] "$argv[2]"
end

# Writes marks of kind $argv[1] with the text $argv[2], percent-encoded; in pieces of 300 characters, so that each mark
# stays below 512, at most $argv[3] of them.
function __bpty_tell
    set -l encoded (builtin string escape --style=url -- $argv[2] | builtin string replace -a '~' %7E)
    set -l length (builtin string length -- $encoded)
    set -l cut ''
    set -l most (builtin math "300 * $argv[3]")
    if builtin test $length -gt $most
        set encoded (builtin string sub -l $most -- $encoded | builtin string replace -r '%.?$' '')
        set length (builtin string length -- $encoded)
        set cut ';t=1'
    end
    if builtin test $length -le 300
        __bpty_put $argv[1] ";d=$encoded$cut"
    else
        set -l pieces (builtin math "ceil($length / 300)")
        set -l k 1
        while builtin test $k -le $pieces
            set -l from (builtin math "($k - 1) * 300 + 1")
            __bpty_put $argv[1] ";d=$k/$pieces:"(builtin string sub -s $from -l 300 -- $encoded)$cut
            set k (builtin math $k + 1)
        end
    end
end

# The working directory; a path has at most 4,096 bytes.
function __bpty_cwd
    set __bpty_pwd $PWD
    __bpty_tell __CWD__ $PWD 42
end

function __bpty_move --on-variable PWD
    set __bpty_moved 1
end

# A submitted line calls __bpty_begun itself, as its first command: after this event fish still writes the window title and
# resets colours, which would be output otherwise. For a typed line there is no later place.
function __bpty_begin --on-event fish_preexec
    switch "$__bpty_x"
        case ''
            # A Ctrl-C has ended both handlers that would have said before the prompt that the last command is over.
            set -l l $__bpty_l
            __bpty_end
            set __bpty_l $l
    end
    # fish raises this event for blanks and comments as well; they are no commands.
    if not builtin string match -qr '^( __bpty_begun; .*|\s*(#[^\n]*)?)$' -- $argv[1]
        switch $argv[1]
            case ' eval *' ' \\\\builtin cd *'
                # Submitted, where our files are not seen.
                __bpty_open
            case '*'
                switch "$__bpty_l"
                    case ''
                        # A person typed it.
                        __bpty_tell __CMD__ $argv[1] 64
                        __bpty_open ';o=1'
                    case '*'
                        __bpty_open "$__bpty_l$__bpty_bare"
                end
        end
    end
end

# The first command of a submitted line; $status is handed on. It switches to full job control: in a sourced file fish
# would leave its children in its own process group, and Ctrl-Z or a kill would hit both.
function __bpty_begun
    set -l x $status
    if builtin status is-interactive-job-control
        set __bpty_jobs 1
        builtin status job-control full
    end
    # Here nothing of fish's own follows the mark.
    __bpty_open $__bpty_l';b=1'
    return $x
end

# The output begins; the argument says that the line is another than a submitted one.
function __bpty_open
    switch "$__bpty_x"
        case ''
        case '*'
            set __bpty_x
            set __bpty_k $__bpty_after[$__bpty_k]
            switch $__bpty_k
                case 1
                    __bpty_carry s c
                case 51
                    __bpty_carry s
            end
            builtin printf '%s\e]7717;__BEGIN__;n=%s;i=%s;s=%s;c=%s;p=%s%s\a' "$__bpty_133c" $__bpty_n $fish_pid \
                $__bpty_high_s$__bpty_even[$__bpty_k] $__bpty_high_c$__bpty_pairs[$__bpty_k] $__bpty_high_p$__bpty_pairs[$__bpty_low_p] "$argv"
    end
end

# Last in a submitted line: the output is over. Before fish_postexec, fish 4 writes an OSC 133 of its own.
function __bpty_over
    set -l x $status
    __bpty_put __OUT_END__
    return $x
end

function __bpty_end --on-event fish_postexec
    switch "$__bpty_x"
        case ''
            set -l x $status
            # A Ctrl-C in here ends this handler; the next prompt calls it again.
            if builtin test -p $__bpty_dir/drain
                __bpty_drain
            end
            set __bpty_x $x
            set __bpty_l
            switch "$__bpty_jobs"
                case 1
                    set __bpty_jobs
                    builtin status job-control interactive
            end
            switch "$__bpty_moved"
                case ''
                    builtin printf '\e]7717;__END__;n=%s;i=%s;s=%s;c=%s;p=%s;x=%s%s\a%s' $__bpty_n $fish_pid \
                        $__bpty_high_s$__bpty_odd[$__bpty_k] $__bpty_high_c$__bpty_pairs[$__bpty_k] \
                        $__bpty_high_p$__bpty_pairs[$__bpty_low_p] $__bpty_x "$__bpty_own" $__bpty_133d$__bpty_x\a\e']133;A'\a
                case '*'
                    __bpty_put __END__ ";x=$__bpty_x$__bpty_own"
                    set __bpty_moved
                    if builtin test "$PWD" != "$__bpty_pwd"
                        __bpty_cwd
                    end
                    builtin printf '%s' $__bpty_133d$__bpty_x\a\e']133;A'\a
            end
            __bpty_listen
    end
end

# What was typed with echo off and not read is discarded: the engine removes the FIFO when that is done.
function __bpty_drain
    builtin printf . >$__bpty_dir/drain
    set -l left 200000
    while builtin test -p $__bpty_dir/drain -a $left -gt 0
        set left (builtin math $left - 1)
    end
end

# The next prompt is a fresh one: fish calls the function fish_prompt for every drawing, but raises this event only then.
# Handlers are called in the order in which they were defined, and one of them may define fish_prompt anew at each prompt.
# So ours is defined again after each command, which makes it the last, and asks whether fish_prompt is still ours.
function __bpty_listen
    function __bpty_fresh --on-event fish_prompt
        switch "$__bpty_x"
            case ''
                __bpty_end
        end
        set __bpty_ours
        builtin emit __bpty_ask 1
        switch "$__bpty_ours"
            case ''
                __bpty_wrap
        end
        __bpty_next
    end
end

# The prompt to come has the next number.
function __bpty_next
    set __bpty_low_p $__bpty_after[$__bpty_low_p]
    switch $__bpty_low_p
        case 1
            __bpty_carry p
    end
end

# Ctrl-C at something typed: nothing ran and $status is what it was, so there is no END. fish only draws the old prompt
# again, mark and all; the second drawing runs fish_prompt, and so makes it a fresh one.
# A syntax error (fish_posterror) stays on the line to be corrected: not a fresh prompt, and no mark.
function __bpty_cancel --on-event fish_cancel
    __bpty_next
    builtin commandline -f repaint
end

# The engine's own key for an empty line: fish 3 turns Ctrl-C into a signal, and loses one that comes while it draws.
function __bpty_clear
    __bpty_next
    # In the command mode of vi the next command would be read as keys.
    switch "$fish_key_bindings"
        case '*_vi_*' '*_hybrid_*'
            set -g fish_bind_mode insert
    end
    builtin commandline ''
    builtin commandline -f cancel repaint
end

# The engine's private key: puts the staged text onto the command line, whatever was there, and runs it. fish would keep a
# text that does not parse on the line: that one is given to eval. What begins with our own function is a line that runs
# a longer text.
function __bpty_load
    builtin read -z -g __bpty_h <$__bpty_dir/submit
    set __bpty_l ';l=1'
    switch "$fish_key_bindings"
        case '*_vi_*' '*_hybrid_*'
            set -g fish_bind_mode insert
    end
    builtin commandline -r -- $__bpty_h
    if not builtin commandline --is-valid
        set __bpty_l ';l=1;r=1'
        builtin commandline -r -- ' __bpty_begun; eval $__bpty_h; __bpty_over'
    end
    builtin commandline -f execute
end
for __bpty_a in default insert visual replace replace_one
    builtin bind -M $__bpty_a \x1d __bpty_clear
    builtin bind -M $__bpty_a \x1e\x1e __bpty_load
end
set -e __bpty_a

# Last in fish_prompt. The terminal is in raw mode since before the event fish_prompt.
function __bpty_ready
    builtin printf '%s\e]7717;__PROMPT__;n=%s;i=%s;s=%s;c=%s;p=%s;x=%s\a' "$__bpty_133b" $__bpty_n $fish_pid \
        $__bpty_high_s$__bpty_odd[$__bpty_k] $__bpty_high_c$__bpty_pairs[$__bpty_k] $__bpty_high_p$__bpty_pairs[$__bpty_low_p] $__bpty_x
end

function __bpty_terminal --on-variable TERM
    set __bpty_bare
    if builtin test "$TERM" = dumb -a -n "$__bpty_own"
        set __bpty_bare ';t=0'
    end
end

# On fewer than four columns fish runs the prompt and draws nothing of it, nor of what is typed.
function __bpty_width --on-variable COLUMNS
    set __bpty_narrow
    if builtin test "$COLUMNS" -lt 4 2>/dev/null
        set __bpty_narrow 1
    end
end

# Takes the user's fish_prompt as it is and puts our mark behind it. Each gets a name of its own: who keeps a copy of ours
# under another name, as a Python environment does, calls the one that it replaced.
function __bpty_wrap
    set -l user
    if not builtin functions -q fish_prompt
        set user __bpty_default_prompt
    else
        # Such a copy given back, or these hooks once more: it names what it wraps. One that is defined anew for each prompt
        # has its copy already.
        set -l text (builtin functions fish_prompt)
        set user (builtin string match -r '__bpty_prompt_\d+|__bpty_default_prompt' -- $text)[1]
        if builtin test -z "$user" -a "$text" = "$__bpty_copied"
            set user $__bpty_copy
        else if builtin test -z "$user"
            set -l number 1
            while builtin functions -q __bpty_prompt_$number
                set number (builtin math $number + 1)
            end
            set user __bpty_prompt_$number
            builtin functions -c fish_prompt $user
            set __bpty_copied "$text"
            set __bpty_copy $user
        end
    end
    # The user's prompt first and nothing before it, because it wants to see $status and $pipestatus. Asked whether it is
    # still ours, which comes with an argument, it answers.
    function fish_prompt --on-event __bpty_ask --inherit-variable user
        switch "$argv"
            case ''
                $user
                __bpty_ready
                switch "$__bpty_narrow"
                    case 1
                        __bpty_ready >/dev/tty
                end
            case '*'
                set __bpty_ours 1
        end
    end
end

function __bpty_default_prompt
    builtin printf '> '
end

# A history of this conversation's own that no file keeps: fish can only name one in the user's directory. That of a
# person's own shell stays that person's.
if not set -q __bpty_keep
    set -gu fish_history ''
end
__bpty_width
__bpty_terminal
__bpty_wrap
__bpty_listen
# Handed over to a shell that runs where our files are not: commands have to be typed.
set -gu __bpty_f preexec,postexec,prompt,key
if set -q __bpty_file; and not builtin test -r "$__bpty_file"
    set __bpty_f $__bpty_f,nofs
end
# Who this is and on which machine; what a mark cannot hold is left out.
set -g __bpty_user (builtin string match -r '^[0-9A-Za-z._-]{1,64}$' -- "$USER")
set -g __bpty_host (builtin string match -r '^[0-9A-Za-z._-]{1,64}$' -- "$hostname")
__bpty_put __HELLO__ ";v=1;sh=fish;sv="(builtin string replace -ar '[^0-9A-Za-z.-]' _ -- $version)";f=$__bpty_f;u=$__bpty_user;h=$__bpty_host"
set -e __bpty_user __bpty_host
__bpty_end
