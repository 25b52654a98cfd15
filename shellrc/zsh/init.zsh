# What `blockpty shell-init zsh` prints, behind a line that sets __blockpty_dir: a shell that blockpty has not started
# takes its hooks when an engine offers them, in a file of mode 0600 that is named after the shell's process.
#
# It looks for an offer at every prompt and at a key of our own. It prints nothing, and sets no prompt, trap or exported
# name. A shell with our hooks from its start (__bpty_n) needs none of this.

if [[ -o interactive && -z ${__bpty_n-} && ${__blockpty_pid-} != $$ && -d ${__blockpty_dir-} ]]; then
	typeset -g +x __blockpty_pid=$$ __blockpty_taken=

	# Aliases of the user reach into no function that is defined here.
	__blockpty_take() {
		\builtin setopt local_options no_aliases
		\builtin . $__blockpty_dir/$$.offer
	}

	# zsh itself keeps the status around it; only a file of this user is read.
	__blockpty_prompt() {
		\builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return -o no_all_export
		if [[ -O $__blockpty_dir/$$.offer ]]; then
			__blockpty_take
			if [[ -n $__blockpty_taken ]]; then
				__blockpty_taken=
				__bpty_install
			fi
		fi
	}

	# The engine's key: the empty line that is accepted has the function above look for the offer. What a person has typed
	# is on the line again behind that.
	__blockpty_key() {
		\builtin zle .push-line
		\builtin zle .accept-line
	}
	if [[ -o zle ]]; then
		\builtin zle -N __blockpty_key
		for __blockpty_map in emacs viins vicmd; do
			\builtin bindkey -M $__blockpty_map '\e[7716~' __blockpty_key
		done
		unset __blockpty_map
	fi
	typeset -ga precmd_functions
	precmd_functions+=(__blockpty_prompt)
	\builtin print zsh >|$__blockpty_dir/$$
fi
