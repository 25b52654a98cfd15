# shellcheck shell=bash
# What `blockpty shell-init bash` prints, behind a line that sets __blockpty_dir: a shell that blockpty has not started
# takes its hooks when an engine offers them, in a file of mode 0600 that is named after the shell's process.
#
# It looks for an offer at every prompt and at a key of our own. It prints nothing, and sets no prompt, trap or exported
# name. A shell with our hooks from its start (__bpty_n) needs none of this.

if [[ $- == *i* && -z ${__bpty_n-} && ${__blockpty_pid-} != "$$" && -d ${__blockpty_dir-} ]]; then
	__blockpty_pid=$$ __blockpty_line='' __blockpty_point=0

	# Last in PROMPT_COMMAND. bash itself keeps the status and `$_` around it; only a file of this user is read.
	__blockpty_prompt() {
		if [[ -O $__blockpty_dir/$$.offer ]]; then
			# shellcheck disable=SC1090
			\builtin . "$__blockpty_dir/$$.offer"
			# This prompt's own END, which the hooks would have written first; it also tells the directory.
			if [[ ${__blockpty_taken-} ]]; then
				__blockpty_taken=''
				__bpty_end
			fi
		fi
	}

	# The engine's key: the empty line that is accepted next has the prompt above look for the offer. What a person has
	# typed is on the line again behind that.
	__blockpty_stash() {
		__blockpty_line=$READLINE_LINE __blockpty_point=$READLINE_POINT
		READLINE_LINE='' READLINE_POINT=0
	} 2>/dev/null
	__blockpty_give_back() {
		READLINE_LINE=$__blockpty_line READLINE_POINT=$__blockpty_point __blockpty_line=''
	} 2>/dev/null
	# shellcheck disable=SC2016  # expanded when the key is pressed
	for __blockpty_map in emacs-standard vi-insert vi-command; do
		\builtin bind -m "$__blockpty_map" -x '"\e[7713~": __blockpty_stash "$_"'
		\builtin bind -m "$__blockpty_map" '"\e[7714~": accept-line'
		\builtin bind -m "$__blockpty_map" -x '"\e[7715~": __blockpty_give_back "$_"'
		\builtin bind -m "$__blockpty_map" '"\e[7716~": "\e[7713~\e[7714~\e[7715~"'
	done 2>/dev/null
	\builtin unset __blockpty_map

	# shellcheck disable=SC2178,SC2128,SC2179  # a string below 5.1
	if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) && [[ ${PROMPT_COMMAND+x} && ${PROMPT_COMMAND@a} == *r* ]]; then
		\builtin return 0
	elif ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
		PROMPT_COMMAND+=('{ __blockpty_prompt; } 2>/dev/null')
	else
		PROMPT_COMMAND=${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}'{ __blockpty_prompt; } 2>/dev/null'
	fi
	\builtin printf 'bash\n' >|"$__blockpty_dir/$$"
fi
