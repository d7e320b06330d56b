package remoteside

// transitions is the whole behaviour of a session with a client. Read a block
// as "in this state these events are expected"; a pair that is not listed is a
// violation and ends the session through ErrorOccurred, which is listed in
// every state, as is CleanupRequested: an error and a close are legal anywhere.
var transitions = [numStates][numEvents]transition{
	stateDisconnected: {
		evClientSocketConnected: {stateConnectingToAgent, actConnect},
		evErrorOccurred:         {stateDisconnected, actIgnore},
		evCleanupRequested:      {stateDisconnected, actIgnore},
	},
	stateConnectingToAgent: {
		evAgentGreetingOK:  {stateReady, actGreet},
		evErrorOccurred:    {stateError, actReport},
		evCleanupRequested: {stateClosing, actTeardown},
	},
	stateReady: {
		evClientDataStart:  {stateBufferingCommand, actNone},
		evErrorOccurred:    {stateError, actReport},
		evCleanupRequested: {stateClosing, actTeardown},
	},
	stateBufferingCommand: {
		evClientDataPartial:  {stateBufferingCommand, actNone},
		evClientDataComplete: {stateSendingToAgent, actCommand},
		evErrorOccurred:      {stateError, actReport},
		evCleanupRequested:   {stateClosing, actTeardown},
	},
	stateBufferingInquire: {
		evClientDataPartial:  {stateBufferingInquire, actData},
		evClientDataComplete: {stateSendingToAgent, actAnswer},
		evErrorOccurred:      {stateError, actReport},
		evCleanupRequested:   {stateClosing, actTeardown},
	},
	stateSendingToAgent: {
		evWriteOK:               {stateWaitingForAgent, actNone},
		evAgentResponseComplete: {stateSendingToClient, actReply}, // we answered instead of the agent
		evErrorOccurred:         {stateError, actReport},
		evCleanupRequested:      {stateClosing, actTeardown},
	},
	stateWaitingForAgent: {
		evAgentResponseComplete: {stateSendingToClient, actReply},
		evErrorOccurred:         {stateError, actReport},
		evCleanupRequested:      {stateClosing, actTeardown},
	},
	stateSendingToClient: {
		evWriteOK:          {stateWaitingForAgent, actNone}, // S, D or #: the response goes on
		evResponseOKOrErr:  {stateReady, actNone},
		evResponseInquire:  {stateBufferingInquire, actNone},
		evErrorOccurred:    {stateError, actReport},
		evCleanupRequested: {stateClosing, actTeardown},
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
