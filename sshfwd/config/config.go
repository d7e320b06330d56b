package config

import (
	"time"

	"gpg-bridge/internal/usertext"
)

// Config is a resolved destination: the values of ssh_config(5) that a
// connection needs, under ssh_config's names. It is ready to use: tokens and
// tildes are expanded, except in ProxyCommand, KnownHostsCommand and LocalCommand.
type Config struct {
	Destination  string // as the user gave it, for messages
	OriginalHost string // the host the user named, %n
	Hostname     string // where to connect to, lower case
	Port         int
	User         string
	ConfigFile   string // -F, with which jump hosts are resolved too
	BatchMode    bool
	Detached     bool // Options.Detached

	ConnectionAttempts  int           // one a second
	ConnectTimeout      time.Duration // 0 for the system's
	ServerAliveInterval time.Duration // 0 for no keepalives
	ServerAliveCountMax int
	TCPKeepAlive        bool
	IPQoS               QoS
	AddressFamily       string // "any", "inet", "inet6"
	BindAddress         string
	BindInterface       string
	ProxyJump           string // [user@]host[:port] or ssh://…, the last one is next to the host
	ProxyCommand        string // raw, with its tokens
	ProxyUseFdpass      bool   // ProxyCommand hands over a connected socket and ends

	UserKnownHostsFiles   []string
	GlobalKnownHostsFiles []string
	// KnownHostsInDoubt: ssh -G left open which files these two are. They are then all
	// the files that can be meant: a key in one of them counts only if no other file
	// contradicts it, and nothing is written.
	KnownHostsInDoubt                bool
	KnownHostsCommand                string // raw, with its tokens
	RevokedHostKeys                  []string
	HostKeyAlias                     string
	StrictHostKeyChecking            Strictness
	HashKnownHosts                   bool
	CheckHostIP                      bool
	NoHostAuthenticationForLocalhost bool
	UpdateHostKeys                   KeyUpdates
	FingerprintHash                  string // "SHA256" or "MD5"
	VisualHostKey                    bool

	// The lists of algorithms are ssh's, the user's or the default, in the order of
	// preference. Any of them may hold names that golang.org/x/crypto does not know; nil
	// stands for DefaultAlgorithms. HostKeyAlgorithmsOrdered: what is known of the host
	// does not change the order of its list.
	HostKeyAlgorithms        []string
	HostKeyAlgorithmsOrdered bool
	CASignatureAlgorithms    []string
	PubkeyAcceptedAlgorithms []string
	KexAlgorithms            []string
	Ciphers                  []string
	MACs                     []string
	RequiredRSASize          int // bits

	// IdentityFiles and CertificateFiles are paths. IdentitiesAreDefaults: the
	// user named none, and it does not matter if one is missing.
	IdentityFiles         []string
	IdentitiesAreDefaults bool
	CertificateFiles      []string
	IdentityAgent         string // a socket, "none", "SSH_AUTH_SOCK", "$NAME", or "" for SSH_AUTH_SOCK
	IdentitiesOnly        bool
	AddKeysToAgent        KeysToAgent
	// ForwardAgent: sessions may use the agent at ForwardAgentSocket, a path or
	// "$NAME", or if that is "", the one that we use ourselves (Client.ForwardAgent).
	ForwardAgent       bool
	ForwardAgentSocket string

	PreferredAuthentications     []string // nil for ssh's order
	PubkeyAuthentication         bool
	PasswordAuthentication       bool
	KbdInteractiveAuthentication bool
	NumberOfPasswordPrompts      int

	RequestTTY    string // "auto", "no", "yes", "force"
	RemoteCommand string
	LocalCommand  string   // raw, with its tokens; "" also without PermitLocalCommand
	SessionType   string   // "none" (-N), "subsystem" (-s), "default"
	StdinNull     bool     // -n: stdin is /dev/null
	SendEnv       []string // patterns
	SetEnv        []string // NAME=value
	EscapeChar    string   // one character, "^X" or "none"
	// EnableEscapeCommandline: the escape ~C is allowed, as it is with an ssh before 9.2.
	EnableEscapeCommandline bool
	ExitOnForwardFailure    bool
	Forwards                Forwards // LocalForward, RemoteForward, DynamicForward and their options
	LogLevel                usertext.Level

	// ControlPath is where ssh shares its connections, absolute, "" for nowhere, or where
	// there was no ssh to ask. ControlMaster: an ssh that finds no connection there
	// shares its own. ControlPersist is how long that one then stays when it is not
	// used, 0 if this is not limited or it does not stay at all, which ControlPersists
	// tells. ControlAsks: its user is asked whenever it is to be used. A Client shares
	// nothing.
	ControlPath     string
	ControlMaster   bool
	ControlAsks     bool
	ControlPersist  time.Duration
	ControlPersists bool

	hash string // the token %C, where ssh was asked for it

	// Lacks are the settings that have no effect, since a Client has not what they ask for.
	Lacks []Lack

	// Warnings is what ssh said while it read its configuration, one line each,
	// safe for a terminal.
	Warnings []string
}

// Strictness is StrictHostKeyChecking.
type Strictness string

// The values of StrictHostKeyChecking (ssh_config(5)). StrictNo adds unknown
// keys without asking; unlike ssh, a changed or revoked key is refused even
// then.
const (
	StrictAsk       Strictness = "ask"
	StrictYes       Strictness = "yes"
	StrictAcceptNew Strictness = "accept-new"
	StrictNo        Strictness = "no"
)

// KeyUpdates is UpdateHostKeys: what is done about the keys that a host says it has.
type KeyUpdates string

// The values of UpdateHostKeys (ssh_config(5)).
const (
	UpdateNo  KeyUpdates = "no"
	UpdateYes KeyUpdates = "yes"
	UpdateAsk KeyUpdates = "ask"
)
