package agentside

// state is where a session with the agent stands. The names are those of the
// protocol documents that the project began with.
type state uint8

const (
	stateDisconnected state = iota // no agent; before the first event and after a clean end
	stateConnectingToAgent
	stateSocketConnected
	stateReady // the agent waits for a command, or for the answer to its inquiry
	stateSendingToAgent
	stateWaitingForAgent
	stateError
	stateClosing
	stateFatal // something could not be released; nothing more will be tried
	numStates
)

var stateNames = [numStates]string{
	stateDisconnected: "Disconnected", stateConnectingToAgent: "ConnectingToAgent",
	stateSocketConnected: "SocketConnected", stateReady: "Ready",
	stateSendingToAgent: "SendingToAgent", stateWaitingForAgent: "WaitingForAgent",
	stateError: "Error", stateClosing: "Closing", stateFatal: "Fatal",
}

func (s state) String() string { return stateNames[s] }

// final reports whether a session that came here stays here.
func (s state) final() bool { return s == stateDisconnected || s == stateFatal }

// event is what can happen to a session.
type event uint8

const (
	evClientConnectRequested event = iota // Connect
	evClientDataReceived                  // a line to write; before the greeting: the nonce
	evAgentSocketConnected                // caused by actDial
	evAgentWriteOK                        // caused by a write that the agent will answer
	evAgentDataChunk                      // a line that leaves the response open
	evAgentDataReceived                   // OK, ERR or INQUIRE: the agent waits for us
	evErrorOccurred                       // an action, the reader, or a violation
	evCleanupRequested                    // Close, an orderly end, or caused by actReport
	evCleanupComplete                     // caused by actTeardown
	evCleanupError                        // caused by actTeardown
	numEvents

	evNone = numEvents // an action caused nothing further
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
	actViolation    action = iota // the zero value: a pair that is not listed fails fast
	actIgnore                     // listed, and means nothing here: news that came too late
	actNone                       // the move itself is all
	actDial                       // connect the socket
	actPresent                    // the socket is there: the credentials are the first data
	actAuthenticate               // write the credentials of the socket's kind
	actWrite                      // write a line
	actReport                     // the first cause is known: go and clean up
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
