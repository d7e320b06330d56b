package compat

// state is the state of the repair of one conversation with an agent.
type state uint8

const (
	statePassing      state = iota // every line passes
	stateKeyinfoSent               // the agent was sent the client's KEYINFO
	stateListSent                  // the agent was sent the client's HAVEKEY --list
	stateSeekingKey                // the KEYINFO was refused, and the agent was sent a HAVEKEY of ours
	stateGathering                 // the list was refused, and keygrips is being called
	stateSeekingGrips              // the agent was sent a HAVEKEY of ours, for one of the keys
	stateAnswering                 // ReadLine returns an answer of ours
	stateClosed
	numStates
)

var stateNames = [numStates]string{
	statePassing: "Passing", stateKeyinfoSent: "KeyinfoSent", stateListSent: "ListSent",
	stateSeekingKey: "SeekingKey", stateGathering: "Gathering", stateSeekingGrips: "SeekingGrips",
	stateAnswering: "Answering", stateClosed: "Closed",
}

func (s state) String() string { return stateNames[s] }

// event is what can happen to a repair.
type event uint8

const (
	evClientLine       event = iota // a line of the client's, other than these two:
	evClientKeyinfo                 // KEYINFO <grip>
	evClientList                    // HAVEKEY --list[=n]
	evAgentLine                     // S, D or #: the response goes on
	evAgentInquire                  // the agent asks back
	evAgentOK                       // OK: the agent has answered, or has the key
	evAgentForbidden                // Forbidden
	evAgentUnknown                  // IPC parameter error, the answer of an agent before 2.3.2 to --list
	evAgentNoKey                    // No secret key
	evAgentERR                      // any other ERR
	evGripNamed                     // there is another key to ask about; caused by actGather, actConfirm and actDeny
	evGripsExhausted                // the agent was asked about all keys; caused by actConfirm and actDeny
	evGripsUnknown                  // the keys are not known, or the agent has none; caused by actGather, actConfirm and actDeny
	evAnswerTaken                   // ReadLine has returned all of our answer
	evErrorOccurred                 // from a connection, or for a violation
	evCleanupRequested              // from Close
	numEvents

	evNone = numEvents // an action caused no event
)

var eventNames = [numEvents]string{
	evClientLine: "ClientLine", evClientKeyinfo: "ClientKeyinfo", evClientList: "ClientList",
	evAgentLine: "AgentLine", evAgentInquire: "AgentInquire", evAgentOK: "AgentOK",
	evAgentForbidden: "AgentForbidden", evAgentUnknown: "AgentUnknown", evAgentNoKey: "AgentNoKey",
	evAgentERR: "AgentERR", evGripNamed: "GripNamed", evGripsExhausted: "GripsExhausted",
	evGripsUnknown: "GripsUnknown", evAnswerTaken: "AnswerTaken", evErrorOccurred: "ErrorOccurred",
	evCleanupRequested: "CleanupRequested",
}

func (e event) String() string { return eventNames[e] }

// action is what a transition does. It returns the event that it caused.
type action uint8

const (
	actViolation action = iota // the zero value, for pairs that are not listed
	actIgnore                  // the event means nothing
	actNone                    // change the state, do nothing
	actWrite                   // pass the client's line to the agent
	actPass                    // pass the agent's line to the client
	actAskKey                  // send HAVEKEY for the key that the client asked about
	actFound                   // answer the KEYINFO: the agent has the key
	actNotFound                // answer the KEYINFO: the agent does not have the key
	actGather                  // ask which keys there may be
	actAskGrip                 // send HAVEKEY for the next of them
	actConfirm                 // the agent has that key: go on to the next
	actDeny                    // the agent does not have that key: go on to the next
	actList                    // answer the list
	actRefuse                  // answer with the agent's refusal of the client's command
	numActions
)

var actionNames = [numActions]string{
	actViolation: "violation", actIgnore: "ignore", actNone: "-", actWrite: "write", actPass: "pass",
	actAskKey: "askKey", actFound: "found", actNotFound: "notFound", actGather: "gather",
	actAskGrip: "askGrip", actConfirm: "confirm", actDeny: "deny", actList: "list", actRefuse: "refuse",
}

func (a action) String() string { return actionNames[a] }

type transition struct {
	next state
	do   action
}

// transitions is the whole behaviour of the repair. As in the session's table, a pair
// that is not listed is a violation, and an error and a close are listed in every
// state. A line of the client's can come only in Passing, since the session waits for
// each response.
var transitions = [numStates][numEvents]transition{
	statePassing: {
		evClientLine:       {statePassing, actWrite},
		evClientKeyinfo:    {stateKeyinfoSent, actWrite},
		evClientList:       {stateListSent, actWrite},
		evAgentLine:        {statePassing, actPass},
		evAgentInquire:     {statePassing, actPass},
		evAgentOK:          {statePassing, actPass},
		evAgentForbidden:   {statePassing, actPass},
		evAgentUnknown:     {statePassing, actPass},
		evAgentNoKey:       {statePassing, actPass},
		evAgentERR:         {statePassing, actPass},
		evErrorOccurred:    {stateClosed, actNone},
		evCleanupRequested: {stateClosed, actNone},
	},
	stateKeyinfoSent: {
		evAgentLine:        {statePassing, actPass}, // the agent answers by itself
		evAgentInquire:     {statePassing, actPass},
		evAgentOK:          {statePassing, actPass},
		evAgentForbidden:   {stateSeekingKey, actAskKey},
		evAgentUnknown:     {statePassing, actPass},
		evAgentNoKey:       {statePassing, actPass},
		evAgentERR:         {statePassing, actPass},
		evErrorOccurred:    {stateClosed, actNone},
		evCleanupRequested: {stateClosed, actNone},
	},
	stateListSent: {
		evAgentLine:        {statePassing, actPass}, // the agent answers by itself
		evAgentInquire:     {statePassing, actPass},
		evAgentOK:          {statePassing, actPass},
		evAgentForbidden:   {stateGathering, actGather},
		evAgentUnknown:     {stateGathering, actGather},
		evAgentNoKey:       {statePassing, actPass},
		evAgentERR:         {statePassing, actPass},
		evErrorOccurred:    {stateClosed, actNone},
		evCleanupRequested: {stateClosed, actNone},
	},
	stateSeekingKey: {
		evAgentLine:        {stateSeekingKey, actIgnore}, // HAVEKEY has no other lines
		evAgentOK:          {stateAnswering, actFound},
		evAgentForbidden:   {stateAnswering, actRefuse},
		evAgentUnknown:     {stateAnswering, actRefuse},
		evAgentNoKey:       {stateAnswering, actNotFound},
		evAgentERR:         {stateAnswering, actRefuse},
		evErrorOccurred:    {stateClosed, actNone},
		evCleanupRequested: {stateClosed, actNone},
	},
	stateGathering: {
		evGripNamed:        {stateSeekingGrips, actAskGrip},
		evGripsUnknown:     {stateAnswering, actRefuse},
		evErrorOccurred:    {stateClosed, actNone},
		evCleanupRequested: {stateClosed, actNone},
	},
	stateSeekingGrips: {
		evAgentLine:        {stateSeekingGrips, actIgnore},
		evAgentOK:          {stateSeekingGrips, actConfirm},
		evAgentForbidden:   {stateAnswering, actRefuse},
		evAgentUnknown:     {stateAnswering, actRefuse},
		evAgentNoKey:       {stateSeekingGrips, actDeny},
		evAgentERR:         {stateAnswering, actRefuse},
		evGripNamed:        {stateSeekingGrips, actAskGrip},
		evGripsExhausted:   {stateAnswering, actList},
		evGripsUnknown:     {stateAnswering, actRefuse},
		evErrorOccurred:    {stateClosed, actNone},
		evCleanupRequested: {stateClosed, actNone},
	},
	stateAnswering: {
		evAnswerTaken:      {statePassing, actNone},
		evErrorOccurred:    {stateClosed, actNone},
		evCleanupRequested: {stateClosed, actNone},
	},
	stateClosed: {
		evErrorOccurred:    {stateClosed, actIgnore},
		evCleanupRequested: {stateClosed, actIgnore},
	},
}
