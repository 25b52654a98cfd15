# shellcheck shell=sh disable=SC1090,SC1091,SC2034,SC2154
# Shell integration of blockpty for shells of which only the prompt can be marked: dash, busybox ash, ksh93, mksh, and
# `sh` whatever it is.
#
# It puts a mark in front of the prompt (the output ended here), one behind it (the shell reads; its status), and one in
# PS2. What the engine makes of them is not known here. The wire form and the reasons are in ../README.md.
#
# host/shells/plans.py puts a header in front (__bpty_n nonce, __bpty_dir, __bpty_login, __bpty_sh, __bpty_esc and
# __bpty_bel the bytes, __bpty_env the user's ENV where there is one) and writes the whole as a 0600 file that ENV names;
# it is removed at the first authenticated mark.
#
# Rules: the prompts name variables and never hold the nonce, so that an exported prompt tells a child nothing; all
# that counts is arithmetic in the expansion of PS1, without a fork.

# The user's files first, as the shell would have read them without us.
if [ -n "${__bpty_env+x}" ]; then
	ENV=$__bpty_env
	export ENV
else
	unset ENV
fi
if [ "$__bpty_login" = 1 ]; then
	if [ -r /etc/profile ]; then . /etc/profile; fi
	if [ -r "${HOME-}/.profile" ]; then . "$HOME/.profile"; fi
fi
if [ -n "${ENV-}" ]; then
	# POSIX wants parameters expanded in it.
	eval "__bpty_t=\"$ENV\""
	if [ -r "$__bpty_t" ]; then . "$__bpty_t"; fi
else
	case ${KSH_VERSION-} in
	*MIRBSD*)
		if [ -r "${HOME-}/.mkshrc" ]; then . "$HOME/.mkshrc"; fi
		;;
	?*)
		if [ -r /etc/ksh.kshrc ]; then . /etc/ksh.kshrc; fi
		if [ -r "${HOME-}/.kshrc" ]; then . "$HOME/.kshrc"; fi
		;;
	esac
fi

# p and x are fields of the marks: how many prompts there were, and the last status. `open` and `close` stand around what
# takes no room on the line, and `lead` declares them at the beginning of a prompt. t holds something for a few lines.
__bpty_p=0 __bpty_x=0 __bpty_open='' __bpty_close='' __bpty_lead='' __bpty_t=''
HISTFILE=$__bpty_dir/history

# What takes no room on the line has to be declared to the line editor.
if [ -n "${BASH_VERSION-}" ] || [ -n "${BB_ASH_VERSION-}" ]; then
	__bpty_open='\[' __bpty_close='\]'
	# What readline prints between the line and its execution would be output: here nothing marks where that begins.
	if [ -n "${BASH_VERSION-}" ]; then bind 'set enable-bracketed-paste off' 2>/dev/null; fi
else
	case ${KSH_VERSION-} in
	*MIRBSD*)
		# The first character, when a carriage return follows it.
		__bpty_open=$__bpty_soh __bpty_close=$__bpty_soh __bpty_lead=$__bpty_soh$__bpty_cr
		case ${PS1-} in
		?"$__bpty_cr"*)
			__bpty_t=${PS1#?}
			__bpty_open=${PS1%"$__bpty_t"} __bpty_close=$__bpty_open __bpty_lead=$__bpty_open$__bpty_cr
			PS1=${__bpty_t#?}
			;;
		esac
		;;
	esac
fi

# The prompt says by `b=`, being empty, that no BEGIN will come. The status is taken first, because a command
# substitution in the user's prompt may change it; ksh93 calls 256 + signal what all others call 128 + signal.
PS1=$__bpty_lead$__bpty_open${__bpty_esc}']7717;__OUT_END__;n=${__bpty_n-};i=$$;s=0;c=0;p=$((__bpty_p=${__bpty_p:-0}+1));x=$((__bpty_x=$?))'$__bpty_bel$__bpty_close${PS1-'$ '}$__bpty_open${__bpty_esc}']7717;__PROMPT__;n=${__bpty_n-};i=$$;s=0;c=0;p=${__bpty_p-};b=;x=$((${__bpty_x:-0}>256?${__bpty_x:-0}-128:${__bpty_x:-0}))'$__bpty_bel$__bpty_close

# PS2 where the shell expands it: ksh93 and mksh print it as it is.
if [ -z "${KSH_VERSION-}" ]; then
	PS2=$__bpty_open${__bpty_esc}']7717;__PS2__;n=${__bpty_n-};i=$$;s=0;c=0;p=${__bpty_p-}'$__bpty_bel$__bpty_close${PS2-'> '}
fi

# mksh has no printf of its own, and the arguments of a program can be read by everybody.
__bpty_hello() {
	case $(command -v printf) in
	printf) printf '%s' "$1" ;;
	*) print -nr -- "$1" ;;
	esac
}
# Who this is and on which machine, as far as variables and files say it; what a mark cannot hold is left out.
# shellcheck disable=SC3028  # where a shell does not set it, a file says it
__bpty_user=${LOGNAME-${USER-}} __bpty_host=${HOSTNAME-}
if [ -z "$__bpty_host" ] && [ -r /proc/sys/kernel/hostname ]; then
	read -r __bpty_host </proc/sys/kernel/hostname || __bpty_host=''
fi
__bpty_name() {
	case $1 in
	*[!abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-]*) __bpty_t='' ;;
	*) __bpty_t=$1 ;;
	esac
	if [ "${#__bpty_t}" -gt 64 ]; then __bpty_t=''; fi
}
__bpty_name "$__bpty_user" && __bpty_user=$__bpty_t
__bpty_name "$__bpty_host" && __bpty_host=$__bpty_t
__bpty_hello "${__bpty_esc}]7717;__HELLO__;n=$__bpty_n;i=$$;s=0;c=0;p=0;v=1;sh=$__bpty_sh;sv=;f=ps1;u=$__bpty_user;h=$__bpty_host$__bpty_bel"
unset __bpty_user __bpty_host
# Else $_ would hold the mark, and `set -a` would export it.
: ready
