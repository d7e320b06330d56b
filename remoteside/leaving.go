package remoteside

// clientState is how far the client has come in leaving. It is a machine of its
// own beside the session's table, because a client may say BYE or send its last
// byte while the session is in any state, and still gets the answer to what it
// has asked before.
type clientState uint8

const (
	clientStays     clientState = iota // it may send more
	clientSaidBye                      // the agent was sent its BYE: nothing that it sends after that counts
	clientClosed                       // it has sent its last byte, and among what was read so far no BYE
	clientByeClosed                    // it has said BYE and sent its last byte
	clientByeForIt                     // it has sent its last byte without BYE, and we say BYE ourselves; the reply is dropped
	numClientStates
)

var clientStateNames = [numClientStates]string{
	clientStays: "Stays", clientSaidBye: "SaidBye", clientClosed: "Closed",
	clientByeClosed: "ByeClosed", clientByeForIt: "ByeForIt",
}

func (c clientState) String() string { return clientStateNames[c] }

// clientEvent is what brings a client nearer to its end.
type clientEvent uint8

const (
	clientBye   clientEvent = iota // a BYE goes to the agent
	clientEOF                      // the client's last byte was read
	clientNoBye                    // all that it sent is answered, and there was no BYE
	numClientEvents
)

var clientEventNames = [numClientEvents]string{
	clientBye: "Bye", clientEOF: "EOF", clientNoBye: "NoBye",
}

func (e clientEvent) String() string { return clientEventNames[e] }

// clientTransitions says what comes of every event in every state.
var clientTransitions = [numClientStates][numClientEvents]clientState{
	clientStays:     {clientBye: clientSaidBye, clientEOF: clientClosed, clientNoBye: clientStays},
	clientSaidBye:   {clientBye: clientSaidBye, clientEOF: clientByeClosed, clientNoBye: clientSaidBye},
	clientClosed:    {clientBye: clientByeClosed, clientEOF: clientClosed, clientNoBye: clientByeForIt},
	clientByeClosed: {clientBye: clientByeClosed, clientEOF: clientByeClosed, clientNoBye: clientByeClosed},
	clientByeForIt:  {clientBye: clientByeForIt, clientEOF: clientByeForIt, clientNoBye: clientByeForIt},
}

// on moves the client on.
func (c *clientState) on(e clientEvent) { *c = clientTransitions[*c][e] }

// closed reports whether the client has sent its last byte.
func (c clientState) closed() bool {
	return c == clientClosed || c == clientByeClosed || c == clientByeForIt
}

// bye reports whether BYE was sent to the agent, whoever said it.
func (c clientState) bye() bool {
	return c == clientSaidBye || c == clientByeClosed || c == clientByeForIt
}

// byeForIt reports whether we said BYE ourselves.
func (c clientState) byeForIt() bool { return c == clientByeForIt }
