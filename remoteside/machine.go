package remoteside

// state is the state of a session with a client. The names are those of the
// protocol documents that the project began with.
type state uint8

const (
	stateDisconnected state = iota // before the first event, and after a clean end
	stateConnectingToAgent
	stateReady
	stateBufferingCommand // the beginning of a command was read
	stateBufferingInquire // the agent has asked something back
	stateSendingToAgent
	stateWaitingForAgent
	stateSendingToClient
	stateError
	stateClosing
	stateFatal // a connection could not be closed; nothing more will be tried
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

// final reports whether a session stays in this state for good.
func (s state) final() bool { return s == stateDisconnected || s == stateFatal }

// takesLines reports whether the client's lines are taken from their buffer. While
// a command is pending, nothing but the answer to an inquiry may reach the agent:
// anything else makes it end an open pinentry (gnupg agent/call-pinentry.c,
// watch_sock).
func (s state) takesLines() bool {
	return s == stateReady || s == stateBufferingCommand || s == stateBufferingInquire
}

// event is what can happen to a session.
type event uint8

const (
	evClientSocketConnected event = iota // from run
	evClientDataStart                    // the first byte of a command
	evClientDataPartial                  // more of it, or a D line of the answer to an inquiry
	evClientDataComplete                 // a command, or the line that ends the answer to an inquiry
	evAgentGreetingOK                    // caused by actConnect
	evAgentResponseComplete              // a line for the client: the agent's, or one of ours instead
	evResponseOKOrErr                    // caused by actReply
	evResponseInquire                    // caused by actReply
	evWriteOK                            // caused by a write after which it is the agent's turn
	evErrorOccurred                      // from an action, from a pump, or for a violation
	evCleanupRequested                   // at an orderly end, or caused by actReport
	evCleanupComplete                    // caused by actTeardown
	evCleanupError                       // caused by actTeardown
	numEvents

	evNone = numEvents // an action caused no event
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
	actViolation action = iota // the zero value, for pairs that are not listed
	actIgnore                  // the event came too late and means nothing
	actNone                    // change the state, do nothing
	actConnect                 // connect to the agent
	actGreet                   // pass the greeting to the client
	actCommand                 // pass a command to the agent, or answer it
	actData                    // pass a D line of the answer to an inquiry
	actAnswer                  // pass the end of the answer to an inquiry, or cancel the inquiry
	actReply                   // pass a line to the client
	actReport                  // the cause is recorded: request the cleanup
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
