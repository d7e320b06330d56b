package remoteside

// state is where a session with a client stands. The names are those of the
// protocol documents that the project began with.
type state uint8

const (
	stateDisconnected state = iota // no client; before the first event and after a clean end
	stateConnectingToAgent
	stateReady
	stateBufferingCommand // the beginning of a command is here
	stateBufferingInquire // the agent asked something back
	stateSendingToAgent
	stateWaitingForAgent
	stateSendingToClient
	stateError
	stateClosing
	stateFatal // something could not be released; nothing more will be tried
	numStates
)

var stateNames = [numStates]string{
	stateDisconnected: "Disconnected", stateConnectingToAgent: "ConnectingToAgent",
	stateReady: "Ready", stateBufferingCommand: "BufferingCommand",
	stateBufferingInquire: "BufferingInquire", stateSendingToAgent: "SendingToAgent",
	stateWaitingForAgent: "WaitingForAgent", stateSendingToClient: "SendingToClient",
	stateError: "Error", stateClosing: "Closing", stateFatal: "Fatal",
}

func (s state) String() string { return stateNames[s] }

// final reports whether a session that came here stays here.
func (s state) final() bool { return s == stateDisconnected || s == stateFatal }

// takesLines reports whether the client may be listened to. In every other
// state its lines wait in their buffer: while a command is pending nothing may
// reach the agent but the answer to its inquiry, or it ends an open pinentry
// (gnupg agent/call-pinentry.c, watch_sock).
func (s state) takesLines() bool {
	return s == stateReady || s == stateBufferingCommand || s == stateBufferingInquire
}

// event is what can happen to a session.
type event uint8

const (
	evClientSocketConnected event = iota // run
	evClientDataStart                    // the first byte of a command
	evClientDataPartial                  // more of it, or a D line of an inquiry's answer
	evClientDataComplete                 // a command, or the line that ends an answer
	evAgentGreetingOK                    // caused by actConnect
	evAgentResponseComplete              // a line for the client: the agent's, or the guard's
	evResponseOKOrErr                    // caused by actReply
	evResponseInquire                    // caused by actReply
	evWriteOK                            // caused by a write after which the other side is not done
	evErrorOccurred                      // an action, a pump, or a violation
	evCleanupRequested                   // an orderly end, or caused by actReport
	evCleanupComplete                    // caused by actTeardown
	evCleanupError                       // caused by actTeardown
	numEvents

	evNone = numEvents // an action caused nothing further
)

var eventNames = [numEvents]string{
	evClientSocketConnected: "ClientSocketConnected", evClientDataStart: "ClientDataStart",
	evClientDataPartial: "ClientDataPartial", evClientDataComplete: "ClientDataComplete",
	evAgentGreetingOK: "AgentGreetingOK", evAgentResponseComplete: "AgentResponseComplete",
	evResponseOKOrErr: "ResponseOKOrErr", evResponseInquire: "ResponseInquire",
	evWriteOK: "WriteOK", evErrorOccurred: "ErrorOccurred",
	evCleanupRequested: "CleanupRequested", evCleanupComplete: "CleanupComplete",
	evCleanupError: "CleanupError",
}

func (e event) String() string { return eventNames[e] }

// action is what a transition does. It returns the event that it caused.
type action uint8

const (
	actViolation action = iota // the zero value: a pair that is not listed fails fast
	actIgnore                  // listed, and means nothing here: news that came too late
	actNone                    // the move itself is all
	actConnect                 // connect to the agent
	actGreet                   // pass the greeting to the client
	actCommand                 // a command: to the agent, unless the guard answers it
	actData                    // a D line of an answer: to the agent
	actAnswer                  // the end of an answer: to the agent, checked by the guard
	actReply                   // a line to the client
	actReport                  // the first cause is known: go and clean up
	actTeardown                // close both connections
	numActions
)

var actionNames = [numActions]string{
	actViolation: "violation", actIgnore: "ignore", actNone: "-", actConnect: "connect",
	actGreet: "greet", actCommand: "command", actData: "data", actAnswer: "answer",
	actReply: "reply", actReport: "report", actTeardown: "teardown",
}

func (a action) String() string { return actionNames[a] }

type transition struct {
	next state
	do   action
}
