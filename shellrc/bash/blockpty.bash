# shellcheck shell=bash disable=SC2154  # __bp_n, __bp_dir and __bp_login come from the header
# Shell integration of blockpty for bash 4.4 and later (below: no __BEGIN__, the rest works from 3.2 on).
#
# Lives here: the marks that say where a command begins and ends and when the line editor is ready.
# Does not know: what the engine makes of them. The wire form and the reasons are in ../README.md.
# host/shells/ puts a header in front (unset of every name below, then __bp_n nonce, __bp_dir, __bp_login) and
# writes the whole as a 0600 file that is unlinked at the first authenticated mark. So nothing is read later.
#
# Habits: functions are defined before the user's files are read (aliases cannot reach into them); no hook can fail
# (set -e), reads an unset name (set -u), forks, or runs a command that a function of the user could shadow without
# being noticed; the status handed on stands left of `&&`, so that neither ERR nor errexit sees it.

if [[ $- != *i* ]]; then
	# shellcheck disable=SC2317
	\builtin return 0
fi

__bp_s=0 __bp_q=0 __bp_c=0 __bp_p=0 __bp_x=0 __bp_o='' __bp_t='' __bp_pwd='' __bp_a='' __bp_w=1 __bp_alone='' __bp_assoc='' __bp_y='' __bp_seen_ps1=- __bp_seen_ps2=- __bp_tty=1 __bp_array='' __bp_null='' __bp_v=''
__bp_f=ps1

# Writes the mark of kind $1 with the extra fields $2 (each with its leading semicolon), then the text $3, in one
# write(2). To /dev/tty, because the user may have pointed stdout anywhere; opened each time (3 us), because a kept
# descriptor would be inherited by every command. The mark is never assigned to a name: under `set -a` the assignment
# would put the nonce into the environment.
__bp_put() {
	__bp_t=''
	\builtin printf -v __bp_t %s 1 || __bp_t=''
	if [[ $__bp_t && $__bp_tty ]]; then
		\builtin printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
			"$1" "$__bp_n" "$$" "$__bp_s" "$__bp_c" "$__bp_p" "${2-}" "${3-}" >|/dev/tty || __bp_t=''
	elif [[ $__bp_t ]]; then
		\builtin printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
			"$1" "$__bp_n" "$$" "$__bp_s" "$__bp_c" "$__bp_p" "${2-}" "${3-}" || __bp_t=''
	else
		# A function of the user is called `builtin`, or printf was disabled. Two more spellings; when these fail too
		# we are mute, and __PROMPT__ closes the block.
		\command printf -v __bp_t %s 1 || __bp_t=''
		if [[ $__bp_t ]]; then
			\command printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
				"$1" "$__bp_n" "$$" "$__bp_s" "$__bp_c" "$__bp_p" "${2-}" "${3-}" >|/dev/tty || __bp_t=''
		elif \printf -v __bp_t %s 1 && [[ $__bp_t ]]; then
			\printf '\e]7717;%s;n=%s;i=%s;s=%s;c=%s;p=%s%s\a%b' \
				"$1" "$__bp_n" "$$" "$__bp_s" "$__bp_c" "$__bp_p" "${2-}" "${3-}" >|/dev/tty || __bp_t=''
		fi
	fi
	if [[ ! $__bp_t ]]; then __bp_o=1; fi
	__bp_t=''
}

# The working directory, percent-encoded byte by byte; in pieces of 300 characters, so that each mark stays below 512.
# $1 follows the last piece.
__bp_cwd() {
	__bp_d='' __bp_i=0 __bp_k=0 __bp_y='' __bp_v=''
	\builtin local LC_ALL=C || __bp_t=''
	__bp_pwd=$PWD
	if [[ $PWD != *[!A-Za-z0-9/._-]* ]]; then
		__bp_d=$PWD
	else
		for ((__bp_i = 0; __bp_i < ${#PWD}; __bp_i += 1)); do
			__bp_y=${PWD:__bp_i:1}
			if [[ $__bp_y == [!A-Za-z0-9/._-] ]]; then
				# "'c" gives a negative number for bytes above 127 in some versions.
				\builtin printf -v __bp_v %d "'$__bp_y" || __bp_t=''
				\builtin printf -v __bp_y '%%%02X' $((__bp_v & 255)) || __bp_t=''
			fi
			__bp_d+=$__bp_y
		done
	fi
	if [[ ${#__bp_d} -le 300 ]]; then
		__bp_put __CWD__ ";d=$__bp_d" "$1"
	else
		__bp_k=$(((${#__bp_d} + 299) / 300))
		for ((__bp_i = 1; __bp_i <= __bp_k; __bp_i += 1)); do
			if [[ $__bp_i == "$__bp_k" ]]; then __bp_v=$1; else __bp_v=''; fi
			__bp_put __CWD__ ";d=$__bp_i/$__bp_k:${__bp_d:(__bp_i - 1) * 300:300}" "$__bp_v"
		done
	fi
}

# First in PROMPT_COMMAND, entered with the user's status in `$?`. The usual case stands here once more, written out:
# by way of __bp_put it takes 20 us longer. 255 is bash's own descriptor of its terminal, which no command inherits; to
# open /dev/tty takes 10 us. `printf -v` fails to empty __bp_o, which PS1 has set, where `builtin` is not what it was.
__bp_end() {
	__bp_x=$? __bp_s=$((__bp_q + 1))
	\builtin printf -v __bp_o %s '' || __bp_o=1
	if [[ $__bp_o || ! $__bp_tty || ${BASH_XTRACEFD-} || ${PWD-} != "$__bp_pwd" || ! -t 255 ]]; then
		__bp_end_slowly
	elif
		# shellcheck disable=SC2059  # the fields hold no %
		\builtin printf "\\e]7717;__END__;n=$__bp_n;i=$$;s=$__bp_s;c=$__bp_c;p=$__bp_p;x=$__bp_x\\a\\e]133;D;$__bp_x\\a\\e]133;A\\a" >&255
	then
		:
	else
		__bp_o=1
	fi
	# Where nobody comes after us, this is as good as in __bp_post.
	if [[ $__bp_alone && ${__bp_ok+x} && ! $__bp_o && ${__bp_ok[$BASHOPTS${PS0-}${PS1-}${PS2-}${PROMPT_COMMAND[*]-}]-} && ${PS0@a}${PS1@a}${PS2@a}${PROMPT_COMMAND@a} != *x* ]]; then
		__bp_w=''
	fi
	# Only now is the number used: a Ctrl-C above makes bash begin its prompt again, and END again with the same one.
	__bp_q=$__bp_s
}

__bp_end_slowly() {
	# A trace that goes elsewhere than descriptor 2 would take the nonce with it; `local -` (4.4) gives it back at the end.
	if [[ ${BASH_XTRACEFD-} && $- == *x* ]]; then
		if \builtin local -; then \builtin set +x || __bp_t=''; fi
	fi
	__bp_o=''
	if [[ -z ${PWD-} || ${PWD-} == "$__bp_pwd" ]]; then
		__bp_put __END__ ";x=$__bp_x" "\\e]133;D;$__bp_x\\a\\e]133;A\\a"
	else
		__bp_put __END__ ";x=$__bp_x"
		__bp_cwd "\\e]133;D;$__bp_x\\a\\e]133;A\\a"
	fi
}

# The same for a string PROMPT_COMMAND: there the user's own text comes next and wants to see the status.
__bp_pre() {
	__bp_end
	\builtin return "$__bp_x"
}

# Last in PROMPT_COMMAND: one look-up of everything together tells whether it is what was left last time, or whether
# there is anything to mend; a comparison takes twice as long. That all four names are set, so that `set -u` lets their
# attributes be asked, follows from its success. PS1 sets __bp_w again. A child that inherited all our values has no
# array: the texts would be arithmetic there, whose error makes bash ask for its prompt again, for ever.
__bp_post() {
	if [[ $__bp_assoc && ${__bp_ok+x} && ! $__bp_o && ${__bp_ok[$BASHOPTS${PS0-}${PS1-}${PS2-}${PROMPT_COMMAND[*]-}]-} && ${PS0@a}${PS1@a}${PS2@a}${PROMPT_COMMAND@a} != *x* ]]; then
		__bp_w=''
	else
		# With promptvars off, bash prints the text of PS0 and PS1 instead of evaluating it.
		\builtin shopt -s promptvars || __bp_t=''
		__bp_mend
	fi
}

# shellcheck disable=SC2329  # named in PROMPT_COMMAND
__bp_after() { __bp_post; } 2>/dev/null

# Puts back what the user's prompt code, or the command before, took away. An assignment to a readonly name would abort
# the prompt, hence the attributes are asked first. The whole text is compared with what was left last time, because
# matching a suffix takes 30 us in a UTF-8 locale.
__bp_mend() {
	if [[ ${PS1-} != "$__bp_seen_ps1" && ($- == *u* && -z ${PS1+x} || ${PS1@a} != *r*) ]]; then
		PS1=${PS1-}
		PS1=${PS1//"$__bp_out_end"/}
		PS1=$__bp_out_end${PS1//"$__bp_ps1"/}$__bp_ps1
		__bp_seen_ps1=$PS1
	fi
	if [[ ${PS2-} != "$__bp_seen_ps2" && ($- == *u* && -z ${PS2+x} || ${PS2@a} != *r*) ]]; then
		PS2=${PS2-}
		PS2=${PS2//"$__bp_ps2"/}$__bp_ps2
		__bp_seen_ps2=$PS2
	fi
	if [[ ${PS0-} != "$__bp_ps0"* && ($- == *u* && -z ${PS0+x} || ${PS0@a} != *r*) ]]; then
		PS0=${PS0-}
		PS0=$__bp_ps0${PS0//"$__bp_ps0"/}
	fi
	if [[ $__bp_o && $__bp_null ]]; then __bp_hush; fi
	__bp_place
	# In a child shell our text would be noise before every prompt of it.
	if [[ ${PS0+x}${PS1+x}${PS2+x}${PROMPT_COMMAND+x} == xxxx && ${PS0@a}${PS1@a}${PS2@a}${PROMPT_COMMAND@a} == *x* ]]; then
		\builtin export -n PS0 PS1 PS2 PROMPT_COMMAND || __bp_t=''
	fi
	if [[ $__bp_assoc && ${__bp_ok+x} ]]; then
		__bp_ok=()
		__bp_ok[0]=''
		if [[ ${PS0+x}${PS1+x}${PS2+x}${PROMPT_COMMAND+x} == xxxx ]]; then
			__bp_ok[$BASHOPTS$PS0$PS1$PS2${PROMPT_COMMAND[*]}]=1
		fi
	fi
	__bp_t=''
}

# Takes our calls out of one PROMPT_COMMAND text; what remains must still parse (`a; ours; b`), hence the colon.
__bp_strip() {
	__bp_t=$1
	__bp_t=${__bp_t#"$__bp_pc_first"$'\n'}
	__bp_t=${__bp_t%$'\n'"$__bp_pc_quick"}
	__bp_t=${__bp_t%$'\n'"$__bp_pc_full"}
	__bp_t=${__bp_t//"$__bp_pc_first"/:}
	__bp_t=${__bp_t//"$__bp_pc_quick"/:}
	__bp_t=${__bp_t//"$__bp_pc_full"/:}
	if [[ $__bp_t == : || $__bp_t == :$'\n': ]]; then __bp_t=''; fi
}

# Where the user has nothing in PROMPT_COMMAND ($1), the last text is an expansion that usually comes to nothing: no
# command, so nothing to trace, to silence or to call.
__bp_choose() {
	__bp_alone='' __bp_pc_last=$__bp_pc_full
	if [[ $__bp_assoc && ! ${1-} ]]; then __bp_alone=1 __bp_pc_last=$__bp_pc_quick; fi
}

# Ours first and last in PROMPT_COMMAND, the user's elements untouched in between. The last has a fixed index, so that
# PS1 can tell, and mend, its absence.
__bp_place() {
	# shellcheck disable=SC2178,SC2128  # the branch for a string
	if [[ ($- != *u* || ${PROMPT_COMMAND+x}) && ${PROMPT_COMMAND@a} == *r* ]]; then
		__bp_t=''
	elif [[ $__bp_array ]]; then
		if [[ ${PROMPT_COMMAND[0]-} != "$__bp_pc_first" ||
			${PROMPT_COMMAND[99]-} != "$__bp_pc_last" || ${PROMPT_COMMAND[*]: -1} != "$__bp_pc_last" ||
			$((${#PROMPT_COMMAND[@]} == 2)) != "${__bp_alone:-0}" ]]; then
			__bp_u=()
			for __bp_y in ${PROMPT_COMMAND[@]+"${PROMPT_COMMAND[@]}"}; do
				__bp_strip "$__bp_y"
				if [[ $__bp_t ]]; then __bp_u+=("$__bp_t"); fi
			done
			__bp_choose "${__bp_u[@]+x}"
			PROMPT_COMMAND=("$__bp_pc_first" ${__bp_u[@]+"${__bp_u[@]}"})
			PROMPT_COMMAND[99]=$__bp_pc_last
		fi
	elif [[ $__bp_alone && ${PROMPT_COMMAND-} != "$__bp_pc_first"$'\n'"$__bp_pc_last" ||
		${PROMPT_COMMAND-} != "$__bp_pc_first"$'\n'*"$__bp_pc_last" ]]; then
		__bp_strip "${PROMPT_COMMAND-}"
		__bp_choose "$__bp_t"
		PROMPT_COMMAND=$__bp_pc_first$'\n'${__bp_t:+$__bp_t$'\n'}$__bp_pc_last
	fi
	__bp_t=''
}

# /dev/null on descriptor 254, which no command inherits: to open it takes 13 us. What bash saves while it redirects is
# closed on exec and has the lowest free number from 10 on, and a copy of it is closed on exec too.
__bp_hush() {
	__bp_null=''
	if [[ ! -e /dev/fd/254 ]]; then
		{
			if \exec {__bp_v}>|/dev/null && \exec {__bp_v}>&-; then
				{ \exec 254>&"$__bp_v"; } >&-
			fi
		} >|/dev/null
	fi
	if [[ /dev/fd/254 -ef /dev/null ]]; then __bp_null=1; fi
}

# The texts of PS0, PS1, PS2. They name variables and never hold the nonce: an exported prompt prints an empty one in
# a child. `\[` in PS0 would come out as bytes, BEL because ST at the end of PS0 gives stray bytes on 4.4.0.
# shellcheck disable=SC2016
__bp_texts() {
	__bp_t=';n=${__bp_n-};i=$$;'
	__bp_ps0='\e]133;C\a\e]7717;__BEGIN__'$__bp_t's=$((__bp_q=__bp_s=${__bp_s-}+1));c=$((__bp_c=${__bp_c-}+1));p=${__bp_p-}\a'
	__bp_ps2='\[\e]7717;__PS2__'$__bp_t's=${__bp_s-};c=${__bp_c-};p=${__bp_p-}\a\]'
	# In a child there is no __bp_ok. The quotes keep an IFS of letters away from the name.
	__bp_pc_quick='${__bp_ok+${__bp_w:+"__bp_after"}}' __bp_pc_full='{ __bp_post; } 2>/dev/null'
	if [[ ! $__bp_tty ]]; then
		__bp_pc_first='__bp_pre && __bp_t=' __bp_pc_quick=__bp_post __bp_pc_full=__bp_post
	elif [[ $__bp_array && $__bp_null ]]; then
		# bash itself gives each element, and the next command, the status of the last command.
		__bp_pc_first='{ __bp_end; } >&254 2>&254'
	elif [[ $__bp_array ]]; then
		__bp_pc_first='{ __bp_end; } >/dev/null 2>&1'
	else
		__bp_pc_first='{ __bp_pre && __bp_t=; } >/dev/null 2>&1'
	fi
	__bp_pc_last=$__bp_pc_full
	# Where no __END__ was written since the last prompt, the output ends where the prompt begins.
	__bp_out='\e]7717;__OUT_END__'$__bp_t's=${__bp_s-};c=${__bp_c-};p=${__bp_p-}\a'
	__bp_out_end='\[${__bp_o:+${__bp_out@P}}\]'
	__bp_pc_both=$__bp_pc_first$'\n'$__bp_pc_full
	# Unless a look-up has just found everything in place (__bp_w), a key that nobody reads is printed: a suffix that no
	# exit status has, so nothing is cut off; but while it is expanded it puts back PS0 when it was unset
	# (`=`, not `:=`: bash holds a pointer to the text of a set PS0 while it expands PS1) and our place in PROMPT_COMMAND
	# when that was unset, emptied or assigned over. The PS0 of the next command was taken before, so `b` says, by being
	# empty, that no __BEGIN__ will come for it.
	__bp_heal='' __bp_t='${PS0:+1}'
	if [[ $- == *u* && -z ${PS0+x} || ${PS0@a} != *r* ]]; then
		__bp_heal+='${PS0=$__bp_ps0}'
	else
		# No command will have a __BEGIN__, ever. Should PS1 be readonly too, HELLO says it.
		__bp_f=${__bp_f/ps0,/} __bp_t=''
	fi
	if [[ ($- != *u* || ${PROMPT_COMMAND+x}) && ${PROMPT_COMMAND@a} == *r* ]]; then
		__bp_f=${__bp_f%,pc}
	elif [[ $__bp_array ]]; then
		__bp_heal+='${PROMPT_COMMAND[99]:=$__bp_pc_both}'
	else
		__bp_heal+='${PROMPT_COMMAND:=$__bp_pc_both}'
	fi
	__bp_heal=';h=${?%x'$__bp_heal'}'
	__bp_ps1='\[\e]133;B\a\e]7717;__PROMPT__;n=${__bp_n-};i=$$;s=${__bp_s-};c=${__bp_c-};b='$__bp_t';x=$?${__bp_w:+${__bp_heal@P}};p=$((__bp_o=__bp_w=1,__bp_p=${__bp_p-}+1))\a\]'
}

# Below 4.4: PS0 does not exist and neither does ${x@a}, so PS1 and a string PROMPT_COMMAND are set once and left. No
# BEGIN comes, and each prompt says so (`b=`).
# shellcheck disable=SC2016
__bp_install_old() {
	__bp_post() { __bp_t=''; }
	__bp_pc_first='{ __bp_pre && __bp_t=; } >/dev/null 2>&1'
	PROMPT_COMMAND=$__bp_pc_first${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
	PS1=${PS1-}'\[\e]133;B\a\e]7717;__PROMPT__;n=${__bp_n-};i=$$;s=${__bp_s-};c=${__bp_c-};p=$((__bp_p=${__bp_p:-0}+1));b=;x=$?\a\]'
}

# After the user's files. `set -a` is off meanwhile, so that nothing of ours reaches the environment.
__bp_install() {
	__bp_a=''
	if [[ ${BASH_XTRACEFD-} && $- == *x* ]]; then
		if \builtin local -; then \builtin set +x; fi
	fi
	if [[ $- == *a* ]]; then
		__bp_a=1
		\builtin set +a
	fi
	\builtin set +H
	# A restricted shell refuses every redirection to a file; a bare chroot has no /dev.
	if [[ :$BASHOPTS: == *:restricted_shell:* || ! -w /dev/null ]] || ! \builtin printf '' >|/dev/tty; then __bp_tty=''; fi
	HISTFILE=$__bp_dir/history
	\builtin export -n HISTFILE
	\builtin shopt -s promptvars
	if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
		__bp_install_old
	else
		__bp_f=ps0,ps1,ps2,pc
		if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
			__bp_array=1
			__bp_f=ps0,ps1,ps2,array,pc
		fi
		if [[ ! $__bp_tty ]]; then __bp_f=notty,$__bp_f; elif [[ $__bp_array ]]; then __bp_hush; fi
		if \builtin declare -gA __bp_ok; then __bp_ok[0]=''; fi
		if [[ ${__bp_ok@a} == *A* ]]; then __bp_assoc=1; fi
		__bp_texts
		__bp_post
	fi
	# Handed over to a shell that runs where our files are not: commands have to be typed, and are no history of ours.
	if [[ ${__bp_file-} && ! -r ${__bp_file-} ]]; then
		__bp_f+=,nofs
		\builtin unset HISTFILE
	fi
	__bp_put __HELLO__ ";v=1;sh=bash;sv=${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]};f=$__bp_f"
	if [[ $__bp_a ]]; then \builtin set -a; fi
	__bp_t=''
}

# The user's files, at top level, because `declare` inside a function would make local variables. bash has read the
# compiled-in system bashrc already; a login shell is emulated, because --rcfile is ignored by a real one.
if [[ $__bp_login == 1 ]]; then
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
elif [[ $__bp_login != no && -r ~/.bashrc ]]; then
	# shellcheck disable=SC1090
	. ~/.bashrc
fi

{ __bp_install; } 2>/dev/null
