package sshflags

// A Fate is what gpg-bridge ssh does with a flag.
type Fate int

// The fates.
const (
	// Ours: our own client does it, or leaves it out where ssh would notice nothing, either.
	Ours Fate = iota
	// OverSSH: the user's own ssh runs, and the bridge uses its connection.
	OverSSH
	// Handed: the user's own ssh gets the whole command line, without a bridge, since it opens
	// no session.
	Handed
)

func (f Fate) String() string {
	return [...]string{"ours", "over ssh", "handed on"}[f]
}

// A Flag is one of ssh's.
type Flag struct {
	Letter byte
	Value  string // what the usage of ssh calls its value, "" if it has none
	Fate   Fate
	Long   string // gpg-bridge ssh takes --Long, too; "" for none
	Does   string // what it does, in one sentence

	// Option is the option of ssh_config that it sets: "Keyword=value", or "Keyword" for the
	// flag's own value; "" for none. What was given before is replaced, unless First or Many.
	Option string
	First  bool // the first one counts, of the flag's and those of -o
	Many   bool // each counts
}

// Table returns the flags of OpenSSH's ssh, of 9.2 and all versions since (getopt in main of
// ssh.c), in the order of the letters. A new one is a line here.
func Table() []Flag {
	return []Flag{
		{Letter: '1', Fate: Handed, Does: "SSH protocol 1: ssh refuses it."},
		{Letter: '2', Does: "SSH protocol 2, which is the only one: no effect."},
		{Letter: '4', Option: "AddressFamily=inet", Does: "Connects over IPv4 only."},
		{Letter: '6', Option: "AddressFamily=inet6", Does: "Connects over IPv6 only."},
		{Letter: 'A', Long: "forward-agent", Option: "ForwardAgent=yes", Does: "Lets the host use your ssh-agent."},
		{Letter: 'a', Long: "no-forward-agent", Option: "ForwardAgent=no", Does: "Does not let the host use your ssh-agent."},
		{Letter: 'B', Value: "bind_interface", Option: "BindInterface", Does: "Connects from the address of this network interface."},
		{Letter: 'b', Value: "bind_address", Option: "BindAddress", Does: "Connects from this address."},
		{Letter: 'C', Fate: OverSSH, Option: "Compression=yes", Does: "Compresses the connection."},
		{Letter: 'c', Value: "cipher_spec", Option: "Ciphers", Does: "The ciphers, in the order of preference."},
		{Letter: 'D', Value: "[bind_address:]port", Long: "dynamic-forward", Option: "DynamicForward", Many: true, Does: "Listens here as a SOCKS proxy, which connects from the host."},
		{Letter: 'E', Value: "log_file", Does: "Appends messages to this file instead of stderr."},
		{Letter: 'e', Value: "escape_char", Long: "escape", Option: "EscapeChar", Does: "The escape character: one character, ^X or none."},
		{Letter: 'F', Value: "configfile", Long: "config", Does: "Reads this ssh_config and no other; none for no file at all."},
		{Letter: 'f', Fate: OverSSH, Option: "ForkAfterAuthentication=yes", Does: "Goes to the background when logged in; stdin is /dev/null."},
		{Letter: 'G', Fate: Handed, Does: "Prints what ssh_config says of the host."},
		{Letter: 'g', Long: "gateway-ports", Option: "GatewayPorts=yes", Does: "Others may use the forwards that listen here."},
		{Letter: 'I', Value: "pkcs11", Fate: OverSSH, Option: "PKCS11Provider", Does: "Logs in with the keys of this PKCS#11 library."},
		{Letter: 'i', Value: "identity_file", Long: "identity", Option: "IdentityFile", Many: true, Does: "Logs in with the key of this file."},
		{Letter: 'J', Value: "destination", Long: "jump", Option: "ProxyJump", First: true, Does: "Connects through these hosts, with commas between."},
		{Letter: 'K', Fate: OverSSH, Option: "GSSAPIAuthentication=yes", Does: "Logs in by GSSAPI, and hands credentials on to the host."},
		{Letter: 'k', Option: "GSSAPIDelegateCredentials=no", Does: "Hands no GSSAPI credentials on to the host."},
		{Letter: 'L', Value: "address", Long: "local-forward", Option: "LocalForward", Many: true, Does: "Forwards a port or socket here to where the host can connect."},
		{Letter: 'l', Value: "login_name", Long: "login", Option: "User", First: true, Does: "The user to log in as."},
		{Letter: 'M', Fate: OverSSH, Option: "ControlMaster=yes", Does: "Shares this connection with other ssh."},
		{Letter: 'm', Value: "mac_spec", Option: "MACs", Does: "The MAC algorithms, in the order of preference."},
		{Letter: 'N', Long: "no-command", Option: "SessionType=none", Does: "Runs nothing on the host: forwards only."},
		{Letter: 'n', Long: "no-stdin", Option: "StdinNull=yes", Does: "stdin is /dev/null."},
		{Letter: 'O', Value: "ctl_cmd", Fate: Handed, Does: "Controls an ssh that shares its connection."},
		{Letter: 'o', Value: "option", Long: "option", Many: true, Does: "An option of ssh_config: Keyword=value."},
		{Letter: 'P', Value: "tag", Option: "Tag", First: true, Does: "A tag for Match tagged in ssh_config; OpenSSH 9.4 or later."},
		{Letter: 'p', Value: "port", Long: "port", Option: "Port", First: true, Does: "The port on the host."},
		{Letter: 'Q', Value: "query_option", Fate: Handed, Does: "Lists the algorithms that ssh has."},
		{Letter: 'q', Long: "quiet", Option: "LogLevel=QUIET", Does: "No warnings and no messages."},
		{Letter: 'R', Value: "address", Long: "remote-forward", Option: "RemoteForward", Many: true, Does: "Forwards a port or socket of the host to where this side can connect."},
		{Letter: 'S', Value: "ctl_path", Fate: OverSSH, Option: "ControlPath", Does: "The control socket of an ssh that shares its connection; none for none."},
		{Letter: 's', Long: "subsystem", Option: "SessionType=subsystem", Does: "The command is the name of a subsystem."},
		{Letter: 'T', Long: "no-tty", Option: "RequestTTY=no", Does: "No terminal on the host."},
		{Letter: 't', Long: "tty", Option: "RequestTTY=yes", Does: "A terminal on the host for a command, too; twice: even without one here."},
		{Letter: 'V', Fate: Handed, Does: "Prints the version of ssh."},
		{Letter: 'v', Long: "verbose", Option: "LogLevel=DEBUG1", Does: "Says what happens; up to three times."},
		{Letter: 'W', Value: "host:port", Fate: Handed, Does: "Connects stdin and stdout to this address by way of the host."},
		{Letter: 'w', Value: "local_tun[:remote_tun]", Fate: OverSSH, Option: "TunnelDevice", Does: "Connects network devices here and there."},
		{Letter: 'X', Fate: OverSSH, Option: "ForwardX11=yes", Does: "Forwards X11."},
		{Letter: 'x', Option: "ForwardX11=no", Does: "Does not forward X11."},
		{Letter: 'Y', Fate: OverSSH, Option: "ForwardX11=yes", Does: "Forwards X11, and trusts the host with it."},
		{Letter: 'y', Does: "Sends messages to syslog instead of stderr."},
		{Letter: 'Z', Fate: Handed, Does: "Prints the keys that ssh would log in with; OpenSSH after 10.0."},
	}
}

// Find returns the flag of a letter.
func Find(letter byte) (Flag, bool) {
	for _, f := range Table() {
		if f.Letter == letter {
			return f, true
		}
	}
	return Flag{}, false
}

// findLong returns the flag that gpg-bridge ssh also calls --name.
func findLong(name string) (Flag, bool) {
	for _, f := range Table() {
		if f.Long == name && name != "" {
			return f, true
		}
	}
	return Flag{}, false
}
