# Shell integration of blockpty for zsh 5.8 and later: the hooks.
#
# It writes the marks that say where a command begins and ends and when the line editor is ready.
#
# host/shells/ writes a header, this file and zshenv (the wrapper) as one 0600 file `.zshenv`; the header sets __bpty_n
# (nonce), __bpty_dir and __bpty_zdotdir. The wire form and the reasons are in ../README.md.
#
# Rules: defined before any file of the user is read (aliases cannot reach into functions); no fork; every function
# that zsh calls begins with `emulate -L zsh`, and with xtrace, errexit and allexport off for its own duration; those
# that only our functions call (first group) inherit that. A call takes 10 us here and a line of the body under one, so
# the four hooks that run for every command write the usual case out and call only when something is unusual. The user
# may have functions called as builtins are: hence `\builtin` everywhere, no early `return`, and around each hook the
# user's `builtin` itself is disabled, which only an assignment can do.

# What stays between two prompts:
#   s c p x i     fields of the marks: how many marks and commands there were, how many prompts, the last status, and
#                 which shell this is
#   m             the mark that is being written
#   fd            the descriptor of the terminal
#   pwd           the directory that was named last
#   loaded        the field that says so while the line is one that our key has loaded
#   had           the options that are off for such a line
#   bang          1 at the first prompt, where `!` was still special when the line editor began
#   fed           1 where a command follows the key
#   shield        1 while a function of the user's that is called `builtin` is disabled
#   installed     1 from the first prompt on
#   wrapped       the widgets of others that ours has taken the place of
typeset -g +x __bpty_s=0 __bpty_c=0 __bpty_p=0 __bpty_x=0 __bpty_pwd= __bpty_fd= __bpty_m= __bpty_installed= __bpty_shield= __bpty_loaded= __bpty_had= __bpty_fed= __bpty_bang=
typeset -ga +x __bpty_wrapped=()
typeset -g +x __bpty_i=";n=$__bpty_n;i=$$"

# The terminal, by a descriptor that no command inherits; opened again when it was closed.
__bpty_open() {
	__bpty_fd=
	\builtin zmodload -F zsh/system b:sysopen b:syswrite 2>/dev/null && {
		\builtin sysopen -w -o cloexec -u __bpty_fd -- ${TTY:-/dev/tty} 2>/dev/null ||
			\builtin sysopen -w -o cloexec -u __bpty_fd -- /dev/tty 2>/dev/null || __bpty_fd=
	}
	[[ -n $__bpty_fd ]]
}

# Writes $1 to the terminal in one write(2).
__bpty_put() {
	if [[ -n $__bpty_fd ]] && \builtin syswrite -o $__bpty_fd -- "$1"; then
		:
	elif __bpty_open && \builtin syswrite -o $__bpty_fd -- "$1" 2>/dev/null; then
		:
	elif [[ -t 1 ]]; then
		\builtin print -rn -- "$1"
	fi
}

# Sets __bpty_m to the mark of kind $1 with the extra fields $2 (each with its leading semicolon).
__bpty_mark() {
	__bpty_m=$'\e]7717;'"$1$__bpty_i;s=$__bpty_s;c=$__bpty_c;p=$__bpty_p${2-}"$'\a'
}

# zsh prints PROMPT_EOL_MARK exactly where output ended, before any hook can speak: the only place for __OUT_END__.
# The user's visible mark is left out, because it would be printed into the block. Never exported.
__bpty_eol() {
	__bpty_mark __OUT_END__
	typeset -g +x PROMPT_EOL_MARK="%{$__bpty_m%}"
}

# Writes marks of kind $1 with the text $2, percent-encoded byte by byte; in pieces of 300 characters, so that each mark
# stays below 512, at most $3 of them. Called with no_multibyte and extended_glob.
__bpty_tell() {
	local encoded=$2 cut= MATCH MBEGIN MEND
	local -i k n
	# No character is encoded in less than one: what is left out here would not have fitted.
	(( $#encoded > 300 * $3 )) && encoded=${encoded[1, 300 * $3]} cut=';t=1'
	if [[ $encoded == *[^A-Za-z0-9/._-]* ]]; then
		encoded=${encoded//(#m)[^A-Za-z0-9\/._-]/%${(l:2::0:)$(( [##16] #MATCH ))}}
		if (( $#encoded > 300 * $3 )); then
			encoded=${${encoded[1, 300 * $3]}%\%(|[0-9A-F])} cut=';t=1'
		fi
	fi
	if (( $#encoded <= 300 )); then
		__bpty_mark $1 ";d=$encoded$cut"
		__bpty_put $__bpty_m
	else
		n=$(( ($#encoded + 299) / 300 ))
		for (( k = 1; k <= n; k++ )); do
			__bpty_mark $1 ";d=$k/$n:${encoded[(k - 1) * 300 + 1, k * 300]}$cut"
			__bpty_put $__bpty_m
		done
	fi
}

# The working directory; a path has at most 4,096 bytes.
__bpty_cwd() {
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export -o extended_glob -o no_multibyte
	__bpty_pwd=$PWD
	__bpty_tell __CWD__ $PWD 42
}

# What a person typed, when it is long.
__bpty_cmd() {
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export -o extended_glob -o no_multibyte
	__bpty_tell __CMD__ $1 64
}

__bpty_preexec() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bpty_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export -o extended_glob -o no_multibyte
	[[ ${PS1-} == *$'\e]7717;__PROMPT__;'* ]] && __bpty_unprompt
	local __bpty_l= MATCH MBEGIN MEND
	# $1 is the line as it goes into the history, empty when it does not, $3 what zsh made of it; a command of the engine,
	# loaded by its key, staged or (where our files are not seen) typed as eval, needs no telling. A short one goes out in
	# the same write.
	[[ -n $__bpty_loaded || ${3# } == '. '[\$\']*/commands/<->\' || ( -n ${__bpty_file-} && ${3# } == (eval|\\builtin\ cd)' '* ) ]] || {
		__bpty_l=${1:-$3}
		if (( $#__bpty_l <= 100 )); then
			__bpty_l=${__bpty_l//(#m)[^A-Za-z0-9\/._-]/%${(l:2::0:)$(( [##16] #MATCH ))}}
			__bpty_l=$'\e]7717;__CMD__'"$__bpty_i;s=$__bpty_s;c=$__bpty_c;p=$__bpty_p;d=$__bpty_l"$'\a'
		else
			__bpty_cmd $__bpty_l
			__bpty_l=
		fi
	}
	(( __bpty_s += 1, __bpty_c += 1 ))
	__bpty_m="$__bpty_i;s=$__bpty_s;c=$__bpty_c;p=$__bpty_p"$'\a'
	typeset -g +x PROMPT_EOL_MARK=$'%{\e]7717;__OUT_END__'$__bpty_m'%}'
	__bpty_m=$__bpty_l$'\e]133;C\a\e]7717;__BEGIN__'${__bpty_m%$'\a'}$__bpty_loaded$'\a'
	[[ -n $__bpty_fd ]] && \builtin syswrite -o $__bpty_fd -- $__bpty_m || __bpty_put $__bpty_m
	[[ $preexec_functions$precmd_functions == __bpty_preexec__bpty_precmd ]] || __bpty_look
	[[ -n $__bpty_shield ]] && functions[builtin]=${dis_functions[builtin]} __bpty_shield=
	__bpty_m=
}

__bpty_precmd() {
	__bpty_x=$?
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bpty_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	[[ -p $__bpty_dir/drain ]] && __bpty_drain
	(( __bpty_s += 1 ))
	__bpty_m=$'\e]7717;__END__'"$__bpty_i;s=$__bpty_s;c=$__bpty_c;p=$__bpty_p$__bpty_loaded;x=$__bpty_x"$'\a'
	__bpty_loaded=
	if [[ $PWD == $__bpty_pwd ]]; then
		__bpty_m+=$'\e]133;D;'$__bpty_x$'\a\e]133;A\a'
		[[ -n $__bpty_fd ]] && \builtin syswrite -o $__bpty_fd -- $__bpty_m || __bpty_put $__bpty_m
	else
		__bpty_put $__bpty_m
		__bpty_cwd
		__bpty_put $'\e]133;D;'$__bpty_x$'\a\e]133;A\a'
	fi
	[[ $preexec_functions$precmd_functions != __bpty_preexec__bpty_precmd &&
		"$preexec_functions[1] $precmd_functions" == '__bpty_preexec __bpty_precmd '*' __bpty_ready' ]] || {
		[[ $preexec_functions$precmd_functions == __bpty_preexec__bpty_precmd ]] || __bpty_place
		# No hook follows ours (or none will, because zsh walks through a copy of the array).
		if [[ ! -o zle || ${widgets[zle-line-init]-} != user:__bpty_line_init* ]]; then
			__bpty_make_ready
		fi
	}
	[[ -n $__bpty_shield ]] && functions[builtin]=${dis_functions[builtin]} __bpty_shield=
	__bpty_m=
}

# What was typed with echo off and not read is discarded: the engine removes the FIFO when that is done.
__bpty_drain() {
	\builtin emulate -L zsh
	local -i since=SECONDS
	\builtin trap '' INT
	\builtin print -n . >|$__bpty_dir/drain
	while [[ -p $__bpty_dir/drain ]] && (( SECONDS < since + 10 )); do :; done
}

# Not ours alone, so looked at more closely.
__bpty_look() {
	[[ "$preexec_functions[1] $precmd_functions" == '__bpty_preexec __bpty_precmd'(| *' __bpty_ready') ]] || __bpty_place
}

# Puts our hooks back in their places: first, and, when there are others, also last.
__bpty_place() {
	[[ ${preexec_functions[1]-} == __bpty_preexec ]] || preexec_functions=(__bpty_preexec ${preexec_functions:#__bpty_preexec})
	[[ "${precmd_functions-}" == __bpty_precmd(| *' __bpty_ready') ]] || {
		precmd_functions=(${precmd_functions:#(__bpty_precmd|__bpty_ready)})
		precmd_functions=(__bpty_precmd $precmd_functions ${precmd_functions:+__bpty_ready})
	}
}

# Last in precmd: whatever the user's hooks did to the widget or the prompt, the next prompt will say that it is one.
__bpty_ready() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bpty_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	__bpty_make_ready
	[[ -n $__bpty_shield ]] && functions[builtin]=${dis_functions[builtin]} __bpty_shield=
	__bpty_m=
}

__bpty_make_ready() {
	__bpty_unprompt
	if [[ -o zle ]]; then
		__bpty_widget
	else
		# No line editor, no zle-line-init: the only place left is the prompt itself. Literal, and taken out again
		# before the next command runs, so that no child inherits it.
		(( __bpty_p += 1 ))
		__bpty_eol
		__bpty_mark __PROMPT__ ";x=$__bpty_x"
		PS1+="%{"$'\e]133;B\a'$__bpty_m"%}"
	fi
}

# Takes the prompt's fallback mark out of PS1.
__bpty_unprompt() {
	[[ ${PS1-} == *$'\e]7717;__PROMPT__;'* ]] && PS1=${PS1%%'%{'$'\e]133;B\a\e]7717;__PROMPT__;'*}
}

# zle-line-init is a contended widget. When add-zle-hook-widget governs it, ours joins its list (to wrap that one
# recurses, kitty #4428). Any other is wrapped, by a function of its own for each function that is wrapped: a framework
# that has wrapped one of ours and is wrapped in turn then leads to what ours wrapped before, not back to itself.
__bpty_widget() {
	\builtin setopt local_options no_aliases
	local current=${widgets[zle-line-init]-}
	local -a hooked
	local -i k
	if [[ $current == user:azhw:zle-line-init ]]; then
		\builtin zstyle -g hooked zle-line-init widgets
		if [[ -z ${(M)hooked:#*:__bpty_line_init*} ]]; then
			\builtin zle -N __bpty_line_init
			add-zle-hook-widget zle-line-init __bpty_line_init
		fi
	elif [[ -z $current ]]; then
		\builtin zle -N zle-line-init __bpty_line_init
	elif [[ $current != user:__bpty_line_init* ]]; then
		k=${__bpty_wrapped[(Ie)$current]}
		if (( ! k )); then
			__bpty_wrapped+=("$current")
			k=$#__bpty_wrapped
			functions[__bpty_line_init_$k]=$functions[__bpty_line_init]
		fi
		\builtin zle -A zle-line-init __bpty_wrapped_$k
		\builtin zle -N zle-line-init __bpty_line_init_$k
	fi
}

# The engine's private key: puts the staged text into the line editor's buffer, whatever was in it, and accepts it. Where
# a NUL follows the text, it is a line that runs another one: what stands behind the NUL goes into the history instead,
# unless it is empty. Until the command begins, options are off that would have zsh read another text, or ask about it.
__bpty_load() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bpty_shield=1
	# Not into BUFFER itself: zsh 5.9 frees what it does not own then.
	local __bpty_b= __bpty_h= __bpty_o=
	# Said before the text is there: what Ctrl-C ends now was ours.
	__bpty_loaded=';l=1'
	if [[ -n $__bpty_fed ]]; then
		__bpty_o=part
		{ __bpty_fetch } always { TRY_BLOCK_ERROR=0 TRY_BLOCK_INTERRUPT=0 }
	else
		if IFS= \builtin read -r -d '' __bpty_b; then
			IFS= \builtin read -r -d '' __bpty_h
			__bpty_o=1
		fi <"$__bpty_dir/submit"
	fi
	if [[ $__bpty_o == part ]]; then
		# Without a prompt that says so, what was not run would seem to run.
		[[ -n $__bpty_shield ]] && functions[builtin]=${dis_functions[builtin]} __bpty_shield=
		BUFFER=
		\builtin zle .send-break
		\builtin return
	fi
	if [[ -z $__bpty_o && ( -o bang_hist || -n $__bpty_bang ) && $__bpty_b == *'!'* ]]; then
		# Whether `!` is special was decided before the line editor was called, and before the prompt's hooks.
		typeset -g +x __bpty_text=$__bpty_b
		__bpty_o=1 __bpty_h=$__bpty_b __bpty_b=' eval "$__bpty_text"'
	fi
	if [[ -n $__bpty_o ]]; then
		[[ -z $__bpty_h ]] || \builtin print -rs -- "$__bpty_h"
		[[ -o hist_ignore_space ]] || __bpty_had+=' no_hist_ignore_space'
		\builtin setopt hist_ignore_space
	fi
	for __bpty_o in correct correct_all; do
		[[ ! -o $__bpty_o ]] || { __bpty_had+=" $__bpty_o"; \builtin unsetopt $__bpty_o }
	done
	[[ -z $__bpty_had ]] || {
		preexec_functions=(__bpty_give_back $preexec_functions)
		precmd_functions+=(__bpty_give_back)
	}
	BUFFER=$__bpty_b POSTDISPLAY= __bpty_bang=
	\builtin zle .accept-line
	[[ -n $__bpty_shield ]] && functions[builtin]=${dis_functions[builtin]} __bpty_shield=
}

# The same where our files are not: what the file would hold follows the key, as `tag;length;text;history!`, where a
# history that begins with `+` stands for what is behind the NUL, and the length is that of both. The tag is for the
# engine: it sees it when no key took this. What does not come whole is not run: a Ctrl-C takes away what is on its way.
# Not by `read`, which goes on after that and waits for the rest. Not from $TTY, which may be another user's.
__bpty_fetch() {
	local piece= all= parts=
	while [[ $all != *'!'* ]] && \builtin sysread -t 5 -i 0 piece; do
		all+=$piece
	done </dev/tty
	[[ $all == *'!'* ]] || \builtin return 1
	# What was typed behind it.
	[[ $all == *'!' ]] || \builtin zle -U -- "${all#*!}"
	all=${all%%!*}
	# tag;length;rest
	parts=${all#*;}
	__bpty_b=${parts#*;} parts=${parts%%;*}
	__bpty_h=${__bpty_b##*;} __bpty_b=${__bpty_b%;*}
	[[ $parts == $(( ${#__bpty_b} + ${#__bpty_h} )) ]] || \builtin return 1
	__bpty_b=${(g::)__bpty_b} __bpty_o=
	[[ -z $__bpty_h ]] || __bpty_o=1 __bpty_h=${(g::)__bpty_h#+}
}

# First in preexec, or last in precmd where the line is not run. No `emulate -L`: the options are to stay.
__bpty_give_back() {
	setopt ${=__bpty_had}
	__bpty_had=
	preexec_functions=(${preexec_functions:#__bpty_give_back})
	precmd_functions=(${precmd_functions:#__bpty_give_back})
}

# In each keymap in which a command can be typed.
__bpty_bind() {
	local map
	\builtin zle -N __bpty_load
	for map in ${keymaps:#(.safe|command|isearch|menuselect|listscroll|viopp|visual)}; do
		\builtin bindkey -M $map '\e[7717~' __bpty_load || \builtin return 1
	done
}

# The line editor reads now. The number in this function's name tells which widget it wraps; one that is called inside of
# itself goes on to the one before. CONTEXT tells a fresh command line from a continuation, `select` and `vared`.
__bpty_line_init() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bpty_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	if (( $#__bpty_wrapped )); then
		local -i __bpty_k=${funcstack[1]##*[^0-9]}
		while (( __bpty_k )) && [[ ${__bpty_inside-} == *,$__bpty_k,* ]]; do
			(( __bpty_k -= 1 ))
		done
		local __bpty_outer=${__bpty_inside-} __bpty_inside=${__bpty_inside-},$__bpty_k,
		if (( ! __bpty_k )); then
			:
		elif (( ${+functions[${__bpty_wrapped[__bpty_k]#user:}]} )); then
			# By its function where it has one: a widget in a widget takes 12 us more.
			${__bpty_wrapped[__bpty_k]#user:} "$@"
		else
			\builtin zle __bpty_wrapped_$__bpty_k -f nolast -N -- "$@"
		fi
	fi
	# The outermost of ours writes the mark.
	if [[ -n ${__bpty_outer-} ]]; then
		:
	elif [[ $CONTEXT == start ]]; then
		(( __bpty_p += 1 ))
		__bpty_m="$__bpty_i;s=$__bpty_s;c=$__bpty_c;p=$__bpty_p"
		typeset -g +x PROMPT_EOL_MARK=$'%{\e]7717;__OUT_END__'$__bpty_m$'\a%}'
		__bpty_m=$'\e]133;B\a\e]7717;__PROMPT__'"$__bpty_m;x=$__bpty_x"$'\a'
		[[ -n $__bpty_fd ]] && \builtin syswrite -o $__bpty_fd -- $__bpty_m || __bpty_put $__bpty_m
		# After a user's `precmd_functions=()` only this hook is left.
		[[ $preexec_functions$precmd_functions == __bpty_preexec__bpty_precmd ]] || __bpty_look
	elif [[ $CONTEXT == cont ]]; then
		__bpty_mark __PS2__ $__bpty_loaded
		__bpty_put $__bpty_m
	fi
	[[ -z ${__bpty_outer-} && -n $__bpty_shield ]] && functions[builtin]=${dis_functions[builtin]} __bpty_shield=
	__bpty_m=
}

# Runs once, at the first prompt, after the user's files: from precmd_functions, or from `sched` (which zsh asks after
# all precmd hooks) when the user's files emptied that array. The second call only looks after the widget, which a
# prompt theme may have taken in its own first precmd. Not `emulate -L`: the options are to stay.
__bpty_install() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bpty_shield=1
	if [[ -n $__bpty_installed ]]; then
		[[ -o zle ]] && __bpty_ready
	else
		__bpty_installed=1
		[[ ! -o bang_hist ]] || __bpty_bang=1
		[[ -n ${__bpty_keep-} ]] || \builtin unsetopt bang_hist
		\builtin setopt interactive_comments
		__bpty_install_now
	fi
	[[ -n $__bpty_shield ]] && functions[builtin]=${dis_functions[builtin]} __bpty_shield=
	__bpty_m=
}

__bpty_install_now() {
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	local features=preexec,precmd,lineinit
	local -i keep=${SAVEHIST:-0}
	precmd_functions=(${precmd_functions:#__bpty_install})
	(( $+functions[zsh-newuser-install] )) && \builtin unfunction zsh-newuser-install
	# The user's history was read by zsh itself before this point. A fresh list, and the old one without a file, so
	# that neither is written into the other. The history of a person's own shell stays that person's.
	if [[ -z ${__bpty_keep-} ]]; then
		unset HISTFILE
		SAVEHIST=0
		\builtin fc -p "$__bpty_dir/history" ${HISTSIZE:-1000} $keep
		typeset -g +x HISTFILE
	fi
	__bpty_open
	[[ -n $__bpty_fd ]] && features+=,fd
	[[ -o prompt_sp && -o prompt_cr ]] && features+=,eolmark
	[[ -o zle ]] && \builtin zmodload -F zsh/zleparameter p:keymaps p:widgets && __bpty_bind && features+=,key
	# Handed over to a shell that cannot read our files: commands come through the terminal, and are no history of ours.
	if [[ -n ${__bpty_file-} && ! -r ${__bpty_file-} ]]; then
		features+=,nofs
		\builtin zmodload -F zsh/system b:sysread 2>/dev/null && { : </dev/tty } 2>/dev/null && features+=,fed __bpty_fed=1
		unset HISTFILE
	fi
	# Who this is and on which machine; what a mark cannot hold is left out.
	local user=${(%):-%n} host=${(%):-%M}
	[[ -n ${user//[0-9A-Za-z._-]/} || $#user -gt 64 ]] && user=
	[[ -n ${host//[0-9A-Za-z._-]/} || $#host -gt 64 ]] && host=
	__bpty_mark __HELLO__ ";v=1;sh=zsh;sv=${ZSH_VERSION//[^0-9A-Za-z.-]/_};f=$features;u=$user;h=$host"
	__bpty_put $__bpty_m
	# The first prompt's own cycle; `$?` of the startup files means nothing to any caller.
	__bpty_x=0
	() { return 0 }
	__bpty_precmd
}
