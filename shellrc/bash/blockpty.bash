# shellcheck shell=bash disable=SC2154  # __bpty_n, __bpty_dir and __bpty_login come from the header
# Shell integration of blockpty for bash 4.4 and later (below: no __BEGIN__, the rest works from 3.2 on).
#
# It writes the marks that say where a command begins and ends and when the line editor is ready. What the engine makes
# of them is not known here. The wire form and the reasons are in ../README.md.
#
# host/shells/ puts a header in front (unset of every name below, then __bpty_n nonce, __bpty_dir, __bpty_login) and
# writes the whole as a 0600 file that is unlinked at the first authenticated mark. So nothing is read later.
#
# Rules: functions are defined before the user's files are read (aliases cannot reach into them); no hook can fail
# (set -e), reads an unset name (set -u), forks, or runs a command that a function of the user could shadow without
# being noticed; the status handed on stands left of `&&`, so that neither ERR nor errexit sees it.

if [[ $- != *i* ]]; then
	# shellcheck disable=SC2317
	\builtin return 0
fi

# What stays between two prompts:
#   s c p x       fields of the marks: how many marks and commands there were, how many prompts, and the last status
#   q             the number that the last END has used
#   l             1 while the line is one that our key has loaded
#   o             1 from a prompt to the next END: where none was written, the next prompt says that output has ended
#   w             1 unless a look-up has found all in its place: then PS1 puts back what is missing
#   f             the features that HELLO names
#   tty null fed  whether /dev/tty can be written, whether 254 is /dev/null, whether a command follows the key
#   array assoc   whether PROMPT_COMMAND may be an array, and whether __bpty_ok, which has what was in place, is one
#   alone         1 while the user has nothing in PROMPT_COMMAND
#   seen_ps0 ...  the three prompts as we left them
#   pwd           the directory that was named last
#   h hc hx       1, and the user's HISTCONTROL, while a line is kept out of the history; 1 while `!` is switched off
#   a             1 while `set -a` is switched off
# The others (t v y d i k u) hold something for a few lines only.
__bpty_s=0 __bpty_q=0 __bpty_c=0 __bpty_p=0 __bpty_x=0 __bpty_o='' __bpty_t='' __bpty_pwd='' __bpty_a='' __bpty_w=1 __bpty_alone='' __bpty_assoc='' __bpty_y='' __bpty_seen_ps0=- __bpty_seen_ps1=- __bpty_seen_ps2=- __bpty_tty=1 __bpty_array='' __bpty_null='' __bpty_v='' __bpty_l='' __bpty_h='' __bpty_hc='' __bpty_hx='' __bpty_fed=''
__bpty_f=ps1

# Writes the mark of kind $1 with the extra fields $2 (each with its leading semicolon), then the text $3, in one
# write(2). To /dev/tty, because the user may have pointed stdout anywhere; opened each time (3 us), because a kept
# descriptor would be inherited by every command. The mark is never assigned to a name: under `set -a` the assignment
# would put the nonce into the environment.
__bpty_put() {
	__bpty_t=''
	\builtin printf -v __bpty_t %s 1 || __bpty_t=''
	if [[ $__bpty_t && $__bpty_tty ]]; then
		\builtin printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
			"$1" "$__bpty_n" "$$" "$__bpty_s" "$__bpty_c" "$__bpty_p" "${2-}" "${3-}" >|/dev/tty || __bpty_t=''
	elif [[ $__bpty_t ]]; then
		\builtin printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
			"$1" "$__bpty_n" "$$" "$__bpty_s" "$__bpty_c" "$__bpty_p" "${2-}" "${3-}" || __bpty_t=''
	else
		# A function of the user is called `builtin`, or printf was disabled. Two more spellings; when these fail too
		# we are mute, and __PROMPT__ closes the block.
		\command printf -v __bpty_t %s 1 || __bpty_t=''
		if [[ $__bpty_t ]]; then
			\command printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
				"$1" "$__bpty_n" "$$" "$__bpty_s" "$__bpty_c" "$__bpty_p" "${2-}" "${3-}" >|/dev/tty || __bpty_t=''
		elif \printf -v __bpty_t %s 1 && [[ $__bpty_t ]]; then
			\printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
				"$1" "$__bpty_n" "$$" "$__bpty_s" "$__bpty_c" "$__bpty_p" "${2-}" "${3-}" >|/dev/tty || __bpty_t=''
		fi
	fi
	if [[ ! $__bpty_t ]]; then __bpty_o=1; fi
	__bpty_t=''
}

# The working directory, percent-encoded byte by byte; in pieces of 300 characters, so that each mark stays below 512.
# $1 follows the last piece.
__bpty_cwd() {
	__bpty_d='' __bpty_i=0 __bpty_k=0 __bpty_y='' __bpty_v=''
	\builtin local LC_ALL=C || __bpty_t=''
	__bpty_pwd=$PWD
	if [[ $PWD != *[!A-Za-z0-9/._-]* ]]; then
		__bpty_d=$PWD
	else
		for ((__bpty_i = 0; __bpty_i < ${#PWD}; __bpty_i += 1)); do
			__bpty_y=${PWD:__bpty_i:1}
			if [[ $__bpty_y == [!A-Za-z0-9/._-] ]]; then
				# "'c" gives a negative number for bytes above 127 in some versions.
				\builtin printf -v __bpty_v %d "'$__bpty_y" || __bpty_t=''
				\builtin printf -v __bpty_y '%%%02X' $((__bpty_v & 255)) || __bpty_t=''
			fi
			__bpty_d+=$__bpty_y
		done
	fi
	if [[ ${#__bpty_d} -le 300 ]]; then
		__bpty_put __CWD__ ";d=$__bpty_d" "$1"
	else
		__bpty_k=$(((${#__bpty_d} + 299) / 300))
		for ((__bpty_i = 1; __bpty_i <= __bpty_k; __bpty_i += 1)); do
			if [[ $__bpty_i == "$__bpty_k" ]]; then __bpty_v=$1; else __bpty_v=''; fi
			__bpty_put __CWD__ ";d=$__bpty_i/$__bpty_k:${__bpty_d:(__bpty_i - 1) * 300:300}" "$__bpty_v"
		done
	fi
}

# Who this is and on which machine, as \u and \H say it, for HELLO: no prompt pays for it. What a mark cannot hold is
# left out.
__bpty_names() {
	\builtin local LC_ALL=C || __bpty_t=''
	__bpty_d='\u' __bpty_y='\H'
	if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
		__bpty_d=${__bpty_d@P} __bpty_y=${__bpty_y@P}
	else
		__bpty_d=${USER-} __bpty_y=${HOSTNAME-}
	fi
	if [[ ${#__bpty_d} -gt 64 || $__bpty_d == *[!A-Za-z0-9._-]* ]]; then __bpty_d=''; fi
	if [[ ${#__bpty_y} -gt 64 || $__bpty_y == *[!A-Za-z0-9._-]* ]]; then __bpty_y=''; fi
	__bpty_v=";u=$__bpty_d;h=$__bpty_y"
}

# First in PROMPT_COMMAND, entered with the user's status in `$?`. The usual case stands here once more, written out:
# by way of __bpty_put it takes 20 us longer. 255 is bash's own descriptor of its terminal, which no command inherits; to
# open /dev/tty takes 10 us. `printf -v` fails to empty __bpty_o, which PS1 has set, where `builtin` is not what it was.
__bpty_end() {
	__bpty_x=$? __bpty_s=$((__bpty_q + 1))
	\builtin printf -v __bpty_o %s '' || __bpty_o=1
	if [[ $__bpty_o$__bpty_h$__bpty_hx || ! $__bpty_tty || -p $__bpty_dir/drain || ${BASH_XTRACEFD-} || ${PWD-} != "$__bpty_pwd" || ! -t 255 ]]; then
		__bpty_end_slowly
	elif
		# shellcheck disable=SC2059  # the fields hold no %
		\builtin printf "\\e]7717;__END__;n=$__bpty_n;i=$$;s=$__bpty_s;c=$__bpty_c;p=$__bpty_p;l=$__bpty_l;x=$__bpty_x\\a\\e]133;D;$__bpty_x\\a\\e]133;A\\a" >&255
	then
		:
	else
		__bpty_o=1
	fi
	# Where no element follows ours, this is as good as in __bpty_post.
	if [[ $__bpty_alone && ${__bpty_ok+x} && ! $__bpty_o && ${__bpty_ok[$BASHOPTS${PS0-}${PS1-}${PS2-}${PROMPT_COMMAND[*]-}]-} && ${PS0@a}${PS1@a}${PS2@a}${PROMPT_COMMAND@a} != *x* ]]; then
		__bpty_w=''
	fi
	__bpty_l=''
	# Only now is the number used: a Ctrl-C above makes bash begin its prompt again, and END again with the same one.
	__bpty_q=$__bpty_s
}

__bpty_end_slowly() {
	# A trace that goes elsewhere than descriptor 2 would take the nonce with it; `local -` (4.4) gives it back at the end.
	if [[ ${BASH_XTRACEFD-} && $- == *x* ]]; then
		if \builtin local -; then \builtin set +x || __bpty_t=''; fi
	fi
	__bpty_o=''
	# What was typed with echo off and not read is discarded first: the engine removes the FIFO when that is done.
	if [[ -p $__bpty_dir/drain ]] && \builtin printf . >|"$__bpty_dir/drain"; then
		__bpty_k=$SECONDS
		while [[ -p $__bpty_dir/drain ]] && ((SECONDS < __bpty_k + 10)); do :; done
		# And what bash has read of it, and a `read` that was interrupted has not taken.
		while \builtin read -r -d '' __bpty_k; do :; done </dev/null
	fi
	if [[ $__bpty_h && ${HISTCONTROL-} == "ignorespace:$__bpty_hc" ]]; then HISTCONTROL=$__bpty_hc; fi
	__bpty_h=''
	if [[ $__bpty_hx ]]; then
		\builtin set -H
		__bpty_hx=''
	fi
	if [[ -z ${PWD-} || ${PWD-} == "$__bpty_pwd" ]]; then
		__bpty_put __END__ ";l=$__bpty_l;x=$__bpty_x" "\\e]133;D;$__bpty_x\\a\\e]133;A\\a"
	else
		__bpty_put __END__ ";l=$__bpty_l;x=$__bpty_x"
		__bpty_cwd "\\e]133;D;$__bpty_x\\a\\e]133;A\\a"
	fi
}

# Behind a text that was run from a file: its last word and status, unless it ended early.
__bpty_settle() {
	\builtin set -- "${__bpty_st:-$?}"
	\builtin unset __bpty_us __bpty_st
	\builtin return "$1"
}

# The same for a string PROMPT_COMMAND: there the user's own text comes next and wants to see the status.
__bpty_pre() {
	__bpty_end
	\builtin return "$__bpty_x"
}

# Last in PROMPT_COMMAND: one look-up of everything together tells whether it is what was left last time, or whether
# there is anything to repair; a comparison takes twice as long. That all four names are set, so that `set -u` lets their
# attributes be asked, follows from its success. PS1 sets __bpty_w again. A child that inherited all our values has no
# array: the texts would be arithmetic there, whose error makes bash ask for its prompt again, for ever.
__bpty_post() {
	if [[ $__bpty_assoc && ${__bpty_ok+x} && ! $__bpty_o && ${__bpty_ok[$BASHOPTS${PS0-}${PS1-}${PS2-}${PROMPT_COMMAND[*]-}]-} && ${PS0@a}${PS1@a}${PS2@a}${PROMPT_COMMAND@a} != *x* ]]; then
		__bpty_w=''
	else
		# With promptvars off, bash prints the text of PS0 and PS1 instead of evaluating it.
		\builtin shopt -s promptvars || __bpty_t=''
		__bpty_repair
	fi
}

# shellcheck disable=SC2329  # named in PROMPT_COMMAND
__bpty_after() { __bpty_post; } 2>/dev/null

# Puts back what the user's prompt code, or the command before, took away. An assignment to a readonly name would abort
# the prompt, hence the attributes are asked first. The whole text is compared with what was left last time, because
# matching a suffix takes 30 us in a UTF-8 locale.
__bpty_repair() {
	if [[ ${PS1-} != "$__bpty_seen_ps1" && ($- == *u* && -z ${PS1+x} || ${PS1@a} != *r*) ]]; then
		PS1=${PS1-}
		PS1=${PS1//"$__bpty_out_end"/}
		PS1=$__bpty_out_end${PS1//"$__bpty_ps1"/}$__bpty_ps1
		__bpty_seen_ps1=$PS1
	fi
	if [[ ${PS2-} != "$__bpty_seen_ps2" && ($- == *u* && -z ${PS2+x} || ${PS2@a} != *r*) ]]; then
		PS2=${PS2-}
		PS2=${PS2//"$__bpty_ps2"/}$__bpty_ps2
		__bpty_seen_ps2=$PS2
	fi
	if [[ ${PS0-} != "$__bpty_seen_ps0" && ($- == *u* && -z ${PS0+x} || ${PS0@a} != *r*) ]]; then
		PS0=${PS0-}
		PS0=${PS0//"$__bpty_ps0_line"/}
		PS0=${PS0//"$__bpty_ps0_count"/}
		PS0=${PS0//"$__bpty_ps0_mark"/}
		# A backslash at the end of the user's text would take the first character of ours with it.
		__bpty_t=${PS0##*[!\\]}
		if ((${#__bpty_t} % 2)); then PS0+=\\; fi
		PS0=${PS0:+$__bpty_ps0_line}$__bpty_ps0_count$PS0$__bpty_ps0_mark
		__bpty_seen_ps0=$PS0
	fi
	if [[ $__bpty_o && $__bpty_null ]]; then __bpty_hush; fi
	__bpty_place
	# In a child shell our text would be noise before every prompt of it.
	if [[ ${PS0+x}${PS1+x}${PS2+x}${PROMPT_COMMAND+x} == xxxx && ${PS0@a}${PS1@a}${PS2@a}${PROMPT_COMMAND@a} == *x* ]]; then
		\builtin export -n PS0 PS1 PS2 PROMPT_COMMAND || __bpty_t=''
	fi
	if [[ $__bpty_assoc && ${__bpty_ok+x} ]]; then
		__bpty_ok=()
		__bpty_ok[0]=''
		if [[ ${PS0+x}${PS1+x}${PS2+x}${PROMPT_COMMAND+x} == xxxx ]]; then
			__bpty_ok[$BASHOPTS$PS0$PS1$PS2${PROMPT_COMMAND[*]}]=1
		fi
	fi
	__bpty_t=''
}

# Takes our calls out of one PROMPT_COMMAND text; what remains must still parse (`a; ours; b`), hence the colon.
__bpty_strip() {
	__bpty_t=$1
	__bpty_t=${__bpty_t#"$__bpty_pc_first"$'\n'}
	__bpty_t=${__bpty_t%$'\n'"$__bpty_pc_quick"}
	__bpty_t=${__bpty_t%$'\n'"$__bpty_pc_full"}
	__bpty_t=${__bpty_t//"$__bpty_pc_first"/:}
	__bpty_t=${__bpty_t//"$__bpty_pc_quick"/:}
	__bpty_t=${__bpty_t//"$__bpty_pc_full"/:}
	if [[ $__bpty_t == : || $__bpty_t == :$'\n': ]]; then __bpty_t=''; fi
}

# Where the user has nothing in PROMPT_COMMAND ($1), the last text is an expansion that usually comes to nothing: no
# command, so nothing to trace, to silence or to call.
__bpty_choose() {
	__bpty_alone='' __bpty_pc_last=$__bpty_pc_full
	if [[ $__bpty_assoc && ! ${1-} ]]; then __bpty_alone=1 __bpty_pc_last=$__bpty_pc_quick; fi
}

# Ours first and last in PROMPT_COMMAND, the user's elements untouched in between. The last has a fixed index, so that
# PS1 can notice and repair its absence.
__bpty_place() {
	# shellcheck disable=SC2178,SC2128  # the branch for a string
	if [[ ($- != *u* || ${PROMPT_COMMAND+x}) && ${PROMPT_COMMAND@a} == *r* ]]; then
		__bpty_t=''
	elif [[ $__bpty_array ]]; then
		if [[ ${PROMPT_COMMAND[0]-} != "$__bpty_pc_first" ||
			${PROMPT_COMMAND[99]-} != "$__bpty_pc_last" || ${PROMPT_COMMAND[*]: -1} != "$__bpty_pc_last" ||
			$((${#PROMPT_COMMAND[@]} == 2)) != "${__bpty_alone:-0}" ]]; then
			__bpty_u=()
			for __bpty_y in ${PROMPT_COMMAND[@]+"${PROMPT_COMMAND[@]}"}; do
				__bpty_strip "$__bpty_y"
				if [[ $__bpty_t ]]; then __bpty_u+=("$__bpty_t"); fi
			done
			__bpty_choose "${__bpty_u[@]+x}"
			PROMPT_COMMAND=("$__bpty_pc_first" ${__bpty_u[@]+"${__bpty_u[@]}"})
			PROMPT_COMMAND[99]=$__bpty_pc_last
		fi
	elif [[ $__bpty_alone && ${PROMPT_COMMAND-} != "$__bpty_pc_first"$'\n'"$__bpty_pc_last" ||
		${PROMPT_COMMAND-} != "$__bpty_pc_first"$'\n'*"$__bpty_pc_last" ]]; then
		__bpty_strip "${PROMPT_COMMAND-}"
		__bpty_choose "$__bpty_t"
		PROMPT_COMMAND=$__bpty_pc_first$'\n'${__bpty_t:+$__bpty_t$'\n'}$__bpty_pc_last
	fi
	__bpty_t=''
}

# /dev/null on descriptor 254, which no command inherits: to open it takes 13 us. What bash saves while it redirects is
# closed on exec and has the lowest free number from 10 on, and a copy of it is closed on exec too.
__bpty_hush() {
	__bpty_null=''
	if [[ ! -e /dev/fd/254 ]]; then
		{
			if \exec {__bpty_v}>|/dev/null && \exec {__bpty_v}>&-; then
				{ \exec 254>&"$__bpty_v"; } >&-
			fi
		} >|/dev/null
	fi
	if [[ /dev/fd/254 -ef /dev/null ]]; then __bpty_null=1; fi
}

# The engine's private key: puts the staged text into readline's buffer, whatever was in it. Where a NUL follows the text,
# it is a line that runs another one: what stands behind the NUL goes into the history instead, unless it is empty
# (HISTCONTROL keeps the line out until __END__). Bound as `__bpty_load "$_"`, because `$_` becomes the last word of a
# command. `$(<file)` would make the parser of bash 5.2 split the line behind its first word. A `read` that a signal has
# ended may leave a part of its line, even of a password, in bash's own buffer, and the next `read` of whatever file
# begins with that (measured in 5.2): so one of an empty file comes first, which takes it away.
__bpty_load() {
	while \builtin read -r -d '' __bpty_v; do :; done </dev/null
	# Said before the text is there: what Ctrl-C ends now was ours.
	__bpty_k='' __bpty_v='' __bpty_l=1
	if [[ $__bpty_fed ]]; then
		__bpty_fetch || __bpty_t=''
	else
		if IFS= \builtin read -r -d '' READLINE_LINE; then
			IFS= \builtin read -r -d '' __bpty_v || __bpty_t=''
			__bpty_k=1
		fi <"$__bpty_dir/submit"
	fi
	if [[ $__bpty_k && :$SHELLOPTS: == *:history:* ]]; then
		if [[ $__bpty_v ]]; then \builtin history -s -- "$__bpty_v" || __bpty_t=''; fi
		__bpty_h=1 __bpty_hc=${HISTCONTROL-} HISTCONTROL=ignorespace:${HISTCONTROL-}
	fi
	if [[ $- == *H* ]]; then
		\builtin set +H
		__bpty_hx=1
	fi
	READLINE_POINT=99999999
} 2>/dev/null

# The same where our files are not: what the file would hold follows the key, as `tag;length;text;history!`, where a
# history that begins with `+` stands for what is behind the NUL, and the length is that of both. The tag is for the
# engine: it sees it when no key took this. What does not come whole is not run: a Ctrl-C takes away what is on its way.
# One `read`, because each changes the terminal's modes twice; with a limit, because a SIGINT that comes between two of
# its system calls does not end it. A byte 31 stands for a descriptor that is free: none that a user would choose, and
# below the limit.
__bpty_fetch() {
	READLINE_LINE=''
	if IFS=';' \builtin read -rs -t 30 -d '!' __bpty_v __bpty_i __bpty_y __bpty_v && [[ $__bpty_i == $((${#__bpty_y} + ${#__bpty_v})) ]]; then
		READLINE_LINE=${__bpty_y@E}
		if [[ $__bpty_v ]]; then
			__bpty_v=${__bpty_v:1} __bpty_k=1
			__bpty_v=${__bpty_v@E}
		fi
	fi </dev/tty
	if [[ $READLINE_LINE == *$'\x1f'* ]]; then
		for __bpty_y in 249 199 149 109 57 39; do
			if [[ ! -e /dev/fd/$__bpty_y ]] && \builtin eval ": $__bpty_y</dev/null"; then break; fi
		done
		READLINE_LINE=${READLINE_LINE//$'\x1f'/"$__bpty_y"}
	fi
}

# In each keymap of readline's own: one that a user makes is a copy of one of these. The last key does nothing: a SIGINT
# that bash has yet to obey is obeyed with it. In a macro that would cost one of the sixteen levels that readline has.
__bpty_bind() {
	# shellcheck disable=SC2016  # expanded when the key is pressed
	for __bpty_t in emacs-standard vi-insert vi-command; do
		\builtin bind -m "$__bpty_t" -x '"\e[7718~": __bpty_load "$_"' &&
			\builtin bind -m "$__bpty_t" '"\e[7719~": accept-line' &&
			\builtin bind -m "$__bpty_t" '"\e[7717~": "\e[7718~\e[7719~"' &&
			\builtin bind -m "$__bpty_t" -x '"\e[7720~": : "$_"' || \builtin return 1
	done
}

# The texts of PS0, PS1, PS2. They name variables and never hold the nonce: an exported prompt prints an empty one in
# a child. `\[` in PS0 would come out as bytes, BEL because ST at the end of PS0 gives stray bytes on 4.4.0.
# shellcheck disable=SC2016
__bpty_texts() {
	__bpty_t=';n=${__bpty_n-};i=$$;'
	# What the user's PS0 prints is no output, so BEGIN stands behind it, and no part of the line, which LINE in front of it
	# ends. The numbers go up in front too: where the user's text cannot be expanded, bash prints all of PS0 as it is, and
	# the missing number says that a command began.
	__bpty_ps0_line='\e]7717;__LINE__'$__bpty_t's=${__bpty_s-};c=${__bpty_c-};p=${__bpty_p-}\a'
	__bpty_ps0_count='${PPID:__bpty_q=__bpty_s=${__bpty_s-}+1,__bpty_c=${__bpty_c-}+1:0}'
	__bpty_ps0_mark='\e]133;C\a\e]7717;__BEGIN__'$__bpty_t's=${__bpty_s-};c=${__bpty_c-};p=${__bpty_p-};l=${__bpty_l-}\a'
	__bpty_ps2='\[\e]7717;__PS2__'$__bpty_t's=${__bpty_s-};c=${__bpty_c-};p=${__bpty_p-};l=${__bpty_l-}\a\]'
	# In a child there is no __bpty_ok. The quotes keep an IFS of letters away from the name.
	__bpty_pc_quick='${__bpty_ok+${__bpty_w:+"__bpty_after"}}' __bpty_pc_full='{ __bpty_post; } 2>/dev/null'
	if [[ ! $__bpty_tty ]]; then
		__bpty_pc_first='__bpty_pre && __bpty_t=' __bpty_pc_quick=__bpty_post __bpty_pc_full=__bpty_post
	elif [[ $__bpty_array && $__bpty_null ]]; then
		# bash itself gives each element, and the next command, the status of the last command.
		__bpty_pc_first='{ __bpty_end; } >&254 2>&254'
	elif [[ $__bpty_array ]]; then
		__bpty_pc_first='{ __bpty_end; } >/dev/null 2>&1'
	else
		__bpty_pc_first='{ __bpty_pre && __bpty_t=; } >/dev/null 2>&1'
	fi
	__bpty_pc_last=$__bpty_pc_full
	# Where no __END__ was written since the last prompt, the output ends where the prompt begins.
	__bpty_out='\e]7717;__OUT_END__'$__bpty_t's=${__bpty_s-};c=${__bpty_c-};p=${__bpty_p-}\a'
	__bpty_out_end='\[${__bpty_o:+${__bpty_out@P}}\]'
	__bpty_pc_both=$__bpty_pc_first$'\n'$__bpty_pc_full
	# Unless a look-up has just found everything in place (__bpty_w), an unused key is printed: a suffix that no
	# exit status has, so nothing is cut off; but while it is expanded it puts back PS0 when it was unset
	# (`=`, not `:=`: bash holds a pointer to the text of a set PS0 while it expands PS1) and our place in PROMPT_COMMAND
	# when that was unset, emptied or assigned over. The PS0 of the next command was taken before, so `b` says, by being
	# empty, that no __BEGIN__ will come for it.
	__bpty_heal='' __bpty_t='${PS0:+1}'
	if [[ $- == *u* && -z ${PS0+x} || ${PS0@a} != *r* ]]; then
		__bpty_heal+='${PS0=$__bpty_ps0_count$__bpty_ps0_mark}'
	else
		# No command will have a __BEGIN__, ever. Should PS1 be readonly too, HELLO says it.
		__bpty_f=${__bpty_f/ps0,/} __bpty_t=''
	fi
	if [[ ($- != *u* || ${PROMPT_COMMAND+x}) && ${PROMPT_COMMAND@a} == *r* ]]; then
		__bpty_f=${__bpty_f%,pc}
	elif [[ $__bpty_array ]]; then
		__bpty_heal+='${PROMPT_COMMAND[99]:=$__bpty_pc_both}'
	else
		__bpty_heal+='${PROMPT_COMMAND:=$__bpty_pc_both}'
	fi
	__bpty_heal=';h=${?%x'$__bpty_heal'}'
	__bpty_ps1='\[\e]133;B\a\e]7717;__PROMPT__;n=${__bpty_n-};i=$$;s=${__bpty_s-};c=${__bpty_c-};b='$__bpty_t';x=$?${__bpty_w:+${__bpty_heal@P}};p=$((__bpty_o=__bpty_w=1,__bpty_p=${__bpty_p-}+1))\a\]'
}

# Below 4.4: PS0 does not exist and neither does ${x@a}, so PS1 and a string PROMPT_COMMAND are set once and left. No
# BEGIN comes, and each prompt says so (`b=`).
# shellcheck disable=SC2016
__bpty_install_old() {
	__bpty_post() { __bpty_t=''; }
	__bpty_pc_first='{ __bpty_pre && __bpty_t=; } >/dev/null 2>&1'
	PROMPT_COMMAND=$__bpty_pc_first${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
	PS1=${PS1-}'\[\e]133;B\a\e]7717;__PROMPT__;n=${__bpty_n-};i=$$;s=${__bpty_s-};c=${__bpty_c-};p=$((__bpty_p=${__bpty_p:-0}+1));b=;x=$?\a\]'
}

# After the user's files. `set -a` is off meanwhile, so that nothing of ours reaches the environment.
__bpty_install() {
	__bpty_a=''
	if [[ ${BASH_XTRACEFD-} && $- == *x* ]]; then
		if \builtin local -; then \builtin set +x; fi
	fi
	if [[ $- == *a* ]]; then
		__bpty_a=1
		\builtin set +a
	fi
	# The history of a person's own shell stays that person's.
	if [[ ! ${__bpty_keep-} ]]; then
		\builtin set +H
		HISTFILE=$__bpty_dir/history
		\builtin export -n HISTFILE
	fi
	# A restricted shell refuses every redirection to a file; a bare chroot has no /dev.
	if [[ :$BASHOPTS: == *:restricted_shell:* || ! -w /dev/null ]] || ! \builtin printf '' >|/dev/tty; then __bpty_tty=''; fi
	\builtin shopt -s promptvars
	if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
		__bpty_install_old
	else
		__bpty_f=ps0,ps1,ps2,pc
		if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
			__bpty_array=1
			__bpty_f=ps0,ps1,ps2,array,pc
			# Not measured below 5.1.
			if __bpty_bind; then __bpty_f=key,$__bpty_f; fi
		fi
		if [[ ! $__bpty_tty ]]; then __bpty_f=notty,$__bpty_f; elif [[ $__bpty_array ]]; then __bpty_hush; fi
		if \builtin declare -gA __bpty_ok; then __bpty_ok[0]=''; fi
		if [[ ${__bpty_ok@a} == *A* ]]; then __bpty_assoc=1; fi
		__bpty_texts
		__bpty_post
	fi
	# Handed over to a shell that cannot read our files: commands come through the terminal, and are no history of ours.
	if [[ ${__bpty_file-} && ! -r ${__bpty_file-} ]]; then
		__bpty_f+=,nofs
		if [[ $__bpty_tty && -e /dev/fd/0 ]]; then __bpty_f+=,fed __bpty_fed=1; fi
		\builtin unset HISTFILE
	fi
	__bpty_names
	__bpty_put __HELLO__ ";v=1;sh=bash;sv=${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]};f=$__bpty_f$__bpty_v"
	if [[ $__bpty_a ]]; then \builtin set -a; fi
	__bpty_t=''
}

# The user's files, at top level, because `declare` inside a function would make local variables. bash has read the
# compiled-in system bashrc already; a login shell is emulated, because --rcfile is ignored by a real one.
if [[ $__bpty_login == 1 ]]; then
	# shellcheck disable=SC1091
	if [[ -r /etc/profile ]]; then . /etc/profile; fi
	# shellcheck disable=SC1090
	if [[ -r ~/.bash_profile ]]; then
		. ~/.bash_profile
	elif [[ -r ~/.bash_login ]]; then
		. ~/.bash_login
	elif [[ -r ~/.profile ]]; then
		. ~/.profile
	fi
elif [[ $__bpty_login != no && -r ~/.bashrc ]]; then
	# shellcheck disable=SC1090
	. ~/.bashrc
fi

{ __bpty_install; } 2>/dev/null
