# shellcheck shell=sh disable=SC1090,SC1091,SC2034,SC2154
# Shell integration of blockpty for shells of which only the prompt can be marked: dash, busybox ash, ksh93, mksh, and
# `sh` whatever it is.
#
# Lives here: a mark in front of the prompt (the output ended here), one behind it (the shell reads; its status), one in
# PS2. Does not know: what the engine makes of them. The wire form and the reasons are in ../README.md.
# host/shells/posix.py puts a header in front (__bp_n nonce, __bp_dir, __bp_login, __bp_sh, __bp_esc and __bp_bel the
# bytes, __bp_env the user's ENV where there is one) and writes the whole as a 0600 file that ENV names; it is removed
# at the first authenticated mark.
#
# Habits: the prompts name variables and never hold the nonce, so that an exported prompt tells a child nothing; all
# that counts is arithmetic in the expansion of PS1, without a fork.

# The user's files first, as the shell would have read them without us.
if [ -n "${__bp_env+x}" ]; then
	ENV=$__bp_env
	export ENV
else
	unset ENV
fi
if [ "$__bp_login" = 1 ]; then
	if [ -r /etc/profile ]; then . /etc/profile; fi
	if [ -r "${HOME-}/.profile" ]; then . "$HOME/.profile"; fi
fi
if [ -n "${ENV-}" ]; then
	# POSIX wants parameters expanded in it.
	eval "__bp_t=\"$ENV\""
	if [ -r "$__bp_t" ]; then . "$__bp_t"; fi
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

__bp_p=0 __bp_x=0 __bp_open='' __bp_close='' __bp_lead='' __bp_t=''
HISTFILE=$__bp_dir/history

# What takes no room on the line has to be declared to the line editor.
if [ -n "${BASH_VERSION-}" ] || [ -n "${BB_ASH_VERSION-}" ]; then
	__bp_open='\[' __bp_close='\]'
	# What readline prints between the line and its execution would be output: here nothing marks where that begins.
	if [ -n "${BASH_VERSION-}" ]; then bind 'set enable-bracketed-paste off' 2>/dev/null; fi
else
	case ${KSH_VERSION-} in
	*MIRBSD*)
		# The first character, when a carriage return follows it.
		__bp_open=$__bp_soh __bp_close=$__bp_soh __bp_lead=$__bp_soh$__bp_cr
		case ${PS1-} in
		?"$__bp_cr"*)
			__bp_t=${PS1#?}
			__bp_open=${PS1%"$__bp_t"} __bp_close=$__bp_open __bp_lead=$__bp_open$__bp_cr
			PS1=${__bp_t#?}
			;;
		esac
		;;
	esac
fi

# The prompt says by `b=`, being empty, that no BEGIN will come. The status is taken first, because a command
# substitution in the user's prompt may change it; ksh93 calls 256 + signal what all others call 128 + signal.
PS1=$__bp_lead$__bp_open${__bp_esc}']7717;__OUT_END__;n=${__bp_n-};i=$$;s=0;c=0;p=$((__bp_p=${__bp_p:-0}+1));x=$((__bp_x=$?))'$__bp_bel$__bp_close${PS1-'$ '}$__bp_open${__bp_esc}']7717;__PROMPT__;n=${__bp_n-};i=$$;s=0;c=0;p=${__bp_p-};b=;x=$((${__bp_x:-0}>256?${__bp_x:-0}-128:${__bp_x:-0}))'$__bp_bel$__bp_close

# PS2 where the shell expands it: ksh93 and mksh print it as it is.
if [ -z "${KSH_VERSION-}" ]; then
	PS2=$__bp_open${__bp_esc}']7717;__PS2__;n=${__bp_n-};i=$$;s=0;c=0;p=${__bp_p-}'$__bp_bel$__bp_close${PS2-'> '}
fi

# mksh has no printf of its own, and the arguments of a program can be read by everybody.
__bp_hello() {
	case $(command -v printf) in
	printf) printf '%s' "$1" ;;
	*) print -nr -- "$1" ;;
	esac
}
__bp_hello "${__bp_esc}]7717;__HELLO__;n=$__bp_n;i=$$;s=0;c=0;p=0;v=1;sh=$__bp_sh;sv=;f=ps1$__bp_bel"
# Else $_ would hold the mark, and `set -a` would export it.
: ready
