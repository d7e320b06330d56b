package faults

// A Scene is a fault of whole processes, injected where the built gpg-bridge, a
// real gpg-agent and a real sshd serve four clients at once, one in each of the
// states that tell them apart. internal/e2e runs them all.
type Scene struct {
	Name  string
	Means string

	// The outcomes of the client between two commands, of the one whose pinentry is
	// open, of the one with an open inquiry, and of the one whose first command waits for
	// an agent that has not greeted.
	Idle, Pending, Inquiry, Ungreeted Outcome

	After string // what holds afterwards
}

// An Outcome is what happens to one client.
type Outcome string

// The outcomes of a Scene.
const (
	Told    Outcome = "ends; client and agent are told"       // within a second
	Ends    Outcome = "ends; the agent is told"               // within a second; there is no client
	GivenUp Outcome = "ends with the keepalives"              // the agent is told; the client cannot be
	Waits   Outcome = "waits"                                 // until the fault, or the human, is over
	GoesOn  Outcome = "completes its command"                 // as if nothing had happened
	NoAgent Outcome = "is told after 10 s that there is none" // and closed
	Closed  Outcome = "ends when another was not greeted"     // after 5 s: an agent that is to end waits for it
	Absent  Outcome = "is not there"
)

// Scenes are all there are.
var Scenes = []Scene{
	{Name: "agent killed", Means: "gpg-agent gets SIGKILL",
		Idle: Told, Pending: Told, Inquiry: Told, Ungreeted: Absent,
		After: "the next client is served by an agent that was started for it"},
	{Name: "agent stopped", Means: "gpg-agent gets SIGSTOP, and SIGCONT later",
		Idle: Closed, Pending: Waits, Inquiry: Waits, Ungreeted: NoAgent,
		After: "who left meanwhile took the connection to the agent along within a second; the next client is served"},
	{Name: "clients killed", Means: "the processes on the host end",
		Idle: Ends, Pending: Ends, Inquiry: Ends, Ungreeted: Ends,
		After: "the next client is served"},
	{Name: "sshd killed", Means: "the host's sshd gets SIGKILL, with all that it has started",
		Idle: Told, Pending: Told, Inquiry: Told, Ungreeted: Told,
		After: "the bridge is up again, and the next client is served"},
	{Name: "connection cut", Means: "the TCP connection closes, here the ProxyCommand is killed",
		Idle: Told, Pending: Told, Inquiry: Told, Ungreeted: Told,
		After: "the bridge is up again, and the next client is served"},
	{Name: "black hole", Means: "the host's sshd is stopped (SIGSTOP): nothing arrives there any more, and nothing comes",
		Idle: GivenUp, Pending: GivenUp, Inquiry: GivenUp, Ungreeted: GivenUp,
		After: "the bridge is up again, and the next client is served"},
	{Name: "SIGTERM", Means: "gpg-bridge gets it",
		Idle: Told, Pending: Told, Inquiry: Told, Ungreeted: Told,
		After: "status 0, no socket on the host"},
	{Name: "disk full", Means: "what gpg-bridge says and logs goes to /dev/full, with -v",
		Idle: GoesOn, Pending: Waits, Inquiry: GoesOn, Ungreeted: Absent,
		After: "the next client is served"},
}
