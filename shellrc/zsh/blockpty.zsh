# Shell integration of blockpty for zsh 5.8 and later: the hooks.
#
# Lives here: the marks that say where a command begins and ends and when the line editor is ready.
# Does not know: how it got here. host/shells/ writes header + this file + zshenv (the wrapper) as one 0600 file
# `.zshenv`; the header sets __bp_n (nonce), __bp_dir, __bp_zdotdir. The wire form and the reasons are in ../README.md.
#
# Habits: defined before any file of the user is read (aliases cannot reach into functions); no fork; every function
# that zsh calls begins with `emulate -L zsh`, and with xtrace, errexit and allexport off for its own duration; those
# that only our functions call (first group) inherit that. A call takes 10 us here and a line of the body under one, so
# the four hooks that run for every command write the usual case out and call only when something is unusual. The user
# may have functions called as builtins are: hence `\builtin` everywhere, no early `return`, and around each hook the
# user's `builtin` itself is disabled, which only an assignment can do.

typeset -g +x __bp_s=0 __bp_c=0 __bp_p=0 __bp_x=0 __bp_pwd= __bp_fd= __bp_m= __bp_user_init= __bp_installed= __bp_shield=
typeset -g +x __bp_i=";n=$__bp_n;i=$$"

# The terminal, by a descriptor that no command inherits; opened again when somebody closed it.
__bp_open() {
	__bp_fd=
	\builtin zmodload -F zsh/system b:sysopen b:syswrite 2>/dev/null && {
		\builtin sysopen -w -o cloexec -u __bp_fd -- ${TTY:-/dev/tty} 2>/dev/null ||
			\builtin sysopen -w -o cloexec -u __bp_fd -- /dev/tty 2>/dev/null || __bp_fd=
	}
	[[ -n $__bp_fd ]]
}

# Writes $1 to the terminal in one write(2).
__bp_put() {
	if [[ -n $__bp_fd ]] && \builtin syswrite -o $__bp_fd -- "$1"; then
		:
	elif __bp_open && \builtin syswrite -o $__bp_fd -- "$1" 2>/dev/null; then
		:
	elif [[ -t 1 ]]; then
		\builtin print -rn -- "$1"
	fi
}

# Sets __bp_m to the mark of kind $1 with the extra fields $2 (each with its leading semicolon).
__bp_mark() {
	__bp_m=$'\e]7717;'"$1$__bp_i;s=$__bp_s;c=$__bp_c;p=$__bp_p${2-}"$'\a'
}

# zsh prints PROMPT_EOL_MARK exactly where output ended, before any hook can speak: the only place for __OUT_END__.
# The user's visible mark is left out, because it would be printed into the block. Never exported.
__bp_eol() {
	__bp_mark __OUT_END__
	typeset -g +x PROMPT_EOL_MARK="%{$__bp_m%}"
}

# Writes marks of kind $1 with the text $2, percent-encoded byte by byte; in pieces of 300 characters, so that each mark
# stays below 512, at most $3 of them. Called with no_multibyte and extended_glob.
__bp_tell() {
	local encoded=$2 cut= MATCH MBEGIN MEND
	local -i k n
	# No character is encoded in less than one: what is left out here could not have been told.
	(( $#encoded > 300 * $3 )) && encoded=${encoded[1, 300 * $3]} cut=';t=1'
	if [[ $encoded == *[^A-Za-z0-9/._-]* ]]; then
		encoded=${encoded//(#m)[^A-Za-z0-9\/._-]/%${(l:2::0:)$(( [##16] #MATCH ))}}
		if (( $#encoded > 300 * $3 )); then
			encoded=${${encoded[1, 300 * $3]}%\%(|[0-9A-F])} cut=';t=1'
		fi
	fi
	if (( $#encoded <= 300 )); then
		__bp_mark $1 ";d=$encoded$cut"
		__bp_put $__bp_m
	else
		n=$(( ($#encoded + 299) / 300 ))
		for (( k = 1; k <= n; k++ )); do
			__bp_mark $1 ";d=$k/$n:${encoded[(k - 1) * 300 + 1, k * 300]}$cut"
			__bp_put $__bp_m
		done
	fi
}

# The working directory; a path has at most 4,096 bytes.
__bp_cwd() {
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export -o extended_glob -o no_multibyte
	__bp_pwd=$PWD
	__bp_tell __CWD__ $PWD 42
}

# What a person typed, when it is long.
__bp_cmd() {
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export -o extended_glob -o no_multibyte
	__bp_tell __CMD__ $1 64
}

__bp_preexec() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bp_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export -o extended_glob -o no_multibyte
	[[ ${PS1-} == *$'\e]7717;__PROMPT__;'* ]] && __bp_unprompt
	local __bp_l= MATCH MBEGIN MEND
	# $1 is the line as it goes into the history, empty when it does not, $3 what zsh made of it; a command of the engine,
	# staged or (where our files are not seen) typed as eval, needs no telling. A short one goes out in the same write.
	[[ ${3# } == '. '[\$\']*/commands/<->\' || ( -n ${__bp_file-} && ${3# } == (eval|\\builtin\ cd)' '* ) ]] || {
		__bp_l=${1:-$3}
		if (( $#__bp_l <= 100 )); then
			__bp_l=${__bp_l//(#m)[^A-Za-z0-9\/._-]/%${(l:2::0:)$(( [##16] #MATCH ))}}
			__bp_l=$'\e]7717;__CMD__'"$__bp_i;s=$__bp_s;c=$__bp_c;p=$__bp_p;d=$__bp_l"$'\a'
		else
			__bp_cmd $__bp_l
			__bp_l=
		fi
	}
	(( __bp_s += 1, __bp_c += 1 ))
	__bp_m="$__bp_i;s=$__bp_s;c=$__bp_c;p=$__bp_p"$'\a'
	typeset -g +x PROMPT_EOL_MARK=$'%{\e]7717;__OUT_END__'$__bp_m'%}'
	__bp_m=$__bp_l$'\e]133;C\a\e]7717;__BEGIN__'$__bp_m
	[[ -n $__bp_fd ]] && \builtin syswrite -o $__bp_fd -- $__bp_m || __bp_put $__bp_m
	[[ $preexec_functions$precmd_functions == __bp_preexec__bp_precmd ]] || __bp_look
	[[ -n $__bp_shield ]] && functions[builtin]=${dis_functions[builtin]} __bp_shield=
	__bp_m=
}

__bp_precmd() {
	__bp_x=$?
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bp_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	(( __bp_s += 1 ))
	__bp_m=$'\e]7717;__END__'"$__bp_i;s=$__bp_s;c=$__bp_c;p=$__bp_p;x=$__bp_x"$'\a'
	if [[ $PWD == $__bp_pwd ]]; then
		__bp_m+=$'\e]133;D;'$__bp_x$'\a\e]133;A\a'
		[[ -n $__bp_fd ]] && \builtin syswrite -o $__bp_fd -- $__bp_m || __bp_put $__bp_m
	else
		__bp_put $__bp_m
		__bp_cwd
		__bp_put $'\e]133;D;'$__bp_x$'\a\e]133;A\a'
	fi
	[[ $preexec_functions$precmd_functions != __bp_preexec__bp_precmd &&
		"$preexec_functions[1] $precmd_functions" == '__bp_preexec __bp_precmd '*' __bp_ready' ]] || {
		[[ $preexec_functions$precmd_functions == __bp_preexec__bp_precmd ]] || __bp_place
		# Nobody comes after us (or nobody will come, because zsh walks through a copy of the array).
		if [[ ! -o zle || ${widgets[zle-line-init]-} != user:__bp_line_init ]]; then
			__bp_make_ready
		fi
	}
	[[ -n $__bp_shield ]] && functions[builtin]=${dis_functions[builtin]} __bp_shield=
	__bp_m=
}

# Not ours alone, so looked at more closely.
__bp_look() {
	[[ "$preexec_functions[1] $precmd_functions" == '__bp_preexec __bp_precmd'(| *' __bp_ready') ]] || __bp_place
}

# Puts our hooks back in their places: first, and, when there are others, also last.
__bp_place() {
	[[ ${preexec_functions[1]-} == __bp_preexec ]] || preexec_functions=(__bp_preexec ${preexec_functions:#__bp_preexec})
	[[ "${precmd_functions-}" == __bp_precmd(| *' __bp_ready') ]] || {
		precmd_functions=(${precmd_functions:#(__bp_precmd|__bp_ready)})
		precmd_functions=(__bp_precmd $precmd_functions ${precmd_functions:+__bp_ready})
	}
}

# Last in precmd: whatever the user's hooks did to the widget or the prompt, the next prompt will say that it is one.
__bp_ready() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bp_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	__bp_make_ready
	[[ -n $__bp_shield ]] && functions[builtin]=${dis_functions[builtin]} __bp_shield=
	__bp_m=
}

__bp_make_ready() {
	__bp_unprompt
	if [[ -o zle ]]; then
		__bp_widget
	else
		# No line editor, no zle-line-init: the only place left is the prompt itself. Literal, and taken out again
		# before the next command runs, so that no child inherits it.
		(( __bp_p += 1 ))
		__bp_eol
		__bp_mark __PROMPT__ ";x=$__bp_x"
		PS1+="%{"$'\e]133;B\a'$__bp_m"%}"
	fi
}

# Takes the prompt's fallback mark out of PS1.
__bp_unprompt() {
	[[ ${PS1-} == *$'\e]7717;__PROMPT__;'* ]] && PS1=${PS1%%'%{'$'\e]133;B\a\e]7717;__PROMPT__;'*}
}

# zle-line-init is a contended widget: wrap an existing one; when add-zle-hook-widget governs it, join its list (to
# wrap that one recurses, kitty #4428).
__bp_widget() {
	local current=${widgets[zle-line-init]-}
	local -a hooked
	if [[ $current == user:azhw:zle-line-init ]]; then
		\builtin zstyle -g hooked zle-line-init widgets
		if [[ -z ${(M)hooked:#*:__bp_line_init} ]]; then
			__bp_user_init=
			\builtin zle -N __bp_line_init
			add-zle-hook-widget zle-line-init __bp_line_init
		fi
	elif [[ $current != user:__bp_line_init ]]; then
		__bp_user_init=
		if [[ -n $current ]]; then
			\builtin zle -A zle-line-init __bp_user_line_init && __bp_user_init=${${(M)current:#user:*}:-/}
		fi
		\builtin zle -N zle-line-init __bp_line_init
	fi
}

# The line editor reads now. CONTEXT tells a fresh command line from a continuation, `select` and `vared`.
__bp_line_init() {
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bp_shield=1
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	if [[ -n $__bp_user_init ]]; then
		# By its function where it has one: a widget in a widget takes 12 us more.
		if (( ${+functions[${__bp_user_init#user:}]} )); then
			${__bp_user_init#user:} "$@"
		else
			\builtin zle __bp_user_line_init -f nolast -N -- "$@"
		fi
	fi
	if [[ $CONTEXT == start ]]; then
		(( __bp_p += 1 ))
		__bp_m="$__bp_i;s=$__bp_s;c=$__bp_c;p=$__bp_p"
		typeset -g +x PROMPT_EOL_MARK=$'%{\e]7717;__OUT_END__'$__bp_m$'\a%}'
		__bp_m=$'\e]133;B\a\e]7717;__PROMPT__'"$__bp_m;x=$__bp_x"$'\a'
		[[ -n $__bp_fd ]] && \builtin syswrite -o $__bp_fd -- $__bp_m || __bp_put $__bp_m
		# After a user's `precmd_functions=()` only this hook is left.
		[[ $preexec_functions$precmd_functions == __bp_preexec__bp_precmd ]] || __bp_look
	elif [[ $CONTEXT == cont ]]; then
		__bp_mark __PS2__
		__bp_put $__bp_m
	fi
	[[ -n $__bp_shield ]] && functions[builtin]=${dis_functions[builtin]} __bp_shield=
	__bp_m=
}

# Runs once, at the first prompt, after the user's files: from precmd_functions, or from `sched` (which zsh asks after
# all precmd hooks) when the user's files emptied that array. The second call only looks after the widget, which a
# prompt theme may have taken in its own first precmd. Not `emulate -L`: the options are to stay.
__bp_install() {
	__bp_x=$?
	(( ${+functions[builtin]} )) && dis_functions[builtin]=${functions[builtin]} __bp_shield=1
	if [[ -n $__bp_installed ]]; then
		[[ -o zle ]] && __bp_ready
	else
		__bp_installed=1
		\builtin unsetopt bang_hist
		\builtin setopt interactive_comments
		__bp_install_now
	fi
	[[ -n $__bp_shield ]] && functions[builtin]=${dis_functions[builtin]} __bp_shield=
	__bp_m=
}

__bp_install_now() {
	\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
	local features=preexec,precmd,lineinit
	local -i keep=${SAVEHIST:-0}
	precmd_functions=(${precmd_functions:#__bp_install})
	(( $+functions[zsh-newuser-install] )) && \builtin unfunction zsh-newuser-install
	# The user's history was read by zsh itself before this point. A fresh list, and the old one without a file, so
	# that neither is written into the other.
	unset HISTFILE
	SAVEHIST=0
	\builtin fc -p "$__bp_dir/history" ${HISTSIZE:-1000} $keep
	typeset -g +x HISTFILE
	__bp_open
	[[ -n $__bp_fd ]] && features+=,fd
	[[ -o prompt_sp && -o prompt_cr ]] && features+=,eolmark
	# Handed over to a shell that runs where our files are not: commands have to be typed, and are no history of ours.
	if [[ -n ${__bp_file-} && ! -r ${__bp_file-} ]]; then
		features+=,nofs
		unset HISTFILE
	fi
	__bp_mark __HELLO__ ";v=1;sh=zsh;sv=${ZSH_VERSION//[^0-9A-Za-z.-]/_};f=$features"
	__bp_put $__bp_m
	# The first prompt's own cycle; `$?` of the startup files means nothing to anybody.
	__bp_x=0
	() { return 0 }
	__bp_precmd
}
