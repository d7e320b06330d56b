package agentside

// state is the state of a session with the agent. The names are those of the
// protocol documents that the project began with.
type state uint8

const (
	stateDisconnected state = iota // before the first event, and after a clean end
	stateConnectingToAgent
	stateSocketConnected
	stateReady // the agent waits for a command, or for the answer to its inquiry
	stateSendingToAgent
	stateWaitingForAgent
	stateError
	stateClosing
	stateFatal // the connection could not be closed; nothing more will be tried
	numStates
)

var stateNames = [numStates]string{
	stateDisconnected: "Disconnected", stateConnectingToAgent: "ConnectingToAgent",
	stateSocketConnected: "SocketConnected", stateReady: "Ready",
	stateSendingToAgent: "SendingToAgent", stateWaitingForAgent: "WaitingForAgent",
	stateError: "Error", stateClosing: "Closing", stateFatal: "Fatal",
}

func (s state) String() string { return stateNames[s] }

// final reports whether a session stays in this state for good.
func (s state) final() bool { return s == stateDisconnected || s == stateFatal }

// event is what can happen to a session.
type event uint8

const (
	evClientConnectRequested event = iota // Connect
	evClientDataReceived                  // a line to write; before the greeting, the credentials
	evAgentSocketConnected                // caused by actDial
	evAgentWriteOK                        // caused by the write of a line that the agent will answer
	evAgentDataChunk                      // a line after which the response goes on
	evAgentDataReceived                   // OK, ERR or INQUIRE: it is our turn
	evErrorOccurred                       // from an action, from reading, or for a violation
	evCleanupRequested                    // from Close, at an orderly end, or caused by actReport
	evCleanupComplete                     // caused by actTeardown
	evCleanupError                        // caused by actTeardown
	numEvents

	evNone = numEvents // an action caused no event
)

var eventNames = [numEvents]string{
	evClientConnectRequested: "ClientConnectRequested", evClientDataReceived: "ClientDataReceived",
	evAgentSocketConnected: "AgentSocketConnected", evAgentWriteOK: "AgentWriteOK",
	evAgentDataChunk: "AgentDataChunk", evAgentDataReceived: "AgentDataReceived",
	evErrorOccurred: "ErrorOccurred", evCleanupRequested: "CleanupRequested",
	evCleanupComplete: "CleanupComplete", evCleanupError: "CleanupError",
}

func (e event) String() string { return eventNames[e] }

// action is what a transition does. It returns the event that it caused.
type action uint8

const (
	actViolation    action = iota // the zero value, for pairs that are not listed
	actIgnore                     // the event came too late and means nothing
	actNone                       // change the state, do nothing
	actDial                       // connect the socket
	actPresent                    // cause the first write, of the credentials
	actAuthenticate               // write the credentials that the socket's kind asks for
	actWrite                      // write a line
	actReport                     // the cause is recorded: request the cleanup
	actTeardown                   // close the socket
	numActions
)

var actionNames = [numActions]string{
	actViolation: "violation", actIgnore: "ignore", actNone: "-", actDial: "dial",
	actPresent: "present", actAuthenticate: "authenticate", actWrite: "write",
	actReport: "report", actTeardown: "teardown",
}

func (a action) String() string { return actionNames[a] }

type transition struct {
	next state
	do   action
}

// transitions is the whole behaviour of a session with the agent. Read a block
// as "in this state these events are expected"; a pair that is not listed is a
// violation and ends the session through ErrorOccurred, which is listed in
// every state, as is CleanupRequested: an error and a close are legal anywhere.
var transitions = [numStates][numEvents]transition{
	stateDisconnected: {
		evClientConnectRequested: {stateConnectingToAgent, actDial},
		evErrorOccurred:          {stateDisconnected, actIgnore},
		evCleanupRequested:       {stateDisconnected, actIgnore},
	},
	stateConnectingToAgent: {
		evAgentSocketConnected: {stateSocketConnected, actPresent},
		evErrorOccurred:        {stateError, actReport},
		evCleanupRequested:     {stateClosing, actTeardown},
	},
	stateSocketConnected: {
		evClientDataReceived: {stateSendingToAgent, actAuthenticate},
		evErrorOccurred:      {stateError, actReport},
		evCleanupRequested:   {stateClosing, actTeardown},
	},
	stateReady: {
		evClientDataReceived: {stateSendingToAgent, actWrite},
		evErrorOccurred:      {stateError, actReport},
		evCleanupRequested:   {stateClosing, actTeardown},
	},
	stateSendingToAgent: {
		evClientDataReceived: {stateSendingToAgent, actWrite}, // the next line of an inquiry's answer
		evAgentWriteOK:       {stateWaitingForAgent, actNone},
		evErrorOccurred:      {stateError, actReport},
		evCleanupRequested:   {stateClosing, actTeardown},
	},
	stateWaitingForAgent: {
		evAgentDataChunk:    {stateWaitingForAgent, actNone},
		evAgentDataReceived: {stateReady, actNone},
		evErrorOccurred:     {stateError, actReport},
		evCleanupRequested:  {stateClosing, actTeardown},
	},
	stateError: {
		evErrorOccurred:    {stateError, actIgnore},
		evCleanupRequested: {stateClosing, actTeardown},
	},
	stateClosing: {
		evErrorOccurred:    {stateClosing, actIgnore},
		evCleanupRequested: {stateClosing, actIgnore},
		evCleanupComplete:  {stateDisconnected, actNone},
		evCleanupError:     {stateFatal, actNone},
	},
	stateFatal: {
		evErrorOccurred:    {stateFatal, actIgnore},
		evCleanupRequested: {stateFatal, actIgnore},
	},
}
