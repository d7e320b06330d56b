// Package pinentry finds the prompts that a gpg-agent has open. The agent does not tell of
// them; but each is a process that the agent has started, and the system tells of those.
//
//	process.go        a prompt
//	agent_linux.go    the prompts of an agent: its children in /proc (proc(5))
//	family_linux.go   what such a child and those below it run and have open
//	clients_linux.go  who is connected to an agent, and who has gone away (sock_diag(7))
//	names_linux.go    processes by their names
//	hidden_linux.go   whether the system hides the user's own processes
//	end_linux.go      how a prompt is ended
//	program.go        whether a pinentry asks on a terminal, by its name
//	display.go        whether one with windows could open them
//	reader*.go        who else would read what is typed there
//	device*.go        the numbers of terminals
//
// Other systems, and Linux with hidden processes, tell less, or nothing: ErrUnknown.
package pinentry
