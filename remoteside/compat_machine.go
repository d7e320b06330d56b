package remoteside

// compatState is where the repair of one conversation with an agent stands.
type compatState uint8

const (
	compatPassing      compatState = iota // every line passes; there is nothing to repair
	compatKeyinfoSent                     // the agent has a KEYINFO of the client's
	compatListSent                        // the agent has a HAVEKEY --list of the client's
	compatSeekingKey                      // it was refused: the agent has a HAVEKEY of ours
	compatGathering                       // it was refused: the local side names the keys
	compatSeekingGrips                    // the agent has a HAVEKEY of ours, for one of them
	compatAnswering                       // the client gets an answer of ours
	compatClosed
	numCompatStates
)

var compatStateNames = [numCompatStates]string{
	compatPassing: "Passing", compatKeyinfoSent: "KeyinfoSent", compatListSent: "ListSent",
	compatSeekingKey: "SeekingKey", compatGathering: "Gathering", compatSeekingGrips: "SeekingGrips",
	compatAnswering: "Answering", compatClosed: "Closed",
}

func (s compatState) String() string { return compatStateNames[s] }

// compatEvent is what can happen to it.
type compatEvent uint8

const (
	cevClientLine       compatEvent = iota // any line of the client's but these two:
	cevClientKeyinfo                       // KEYINFO <grip>
	cevClientList                          // HAVEKEY --list[=n]
	cevAgentLine                           // S, D or #: the response goes on
	cevAgentInquire                        // the agent asks back
	cevAgentOK                             // the agent can, or has the key
	cevAgentForbidden                      // the agent may not say
	cevAgentUnknown                        // IPC parameter error: what an agent before 2.3.2 says to --list
	cevAgentNoKey                          // No secret key
	cevAgentERR                            // any other ERR
	cevGripNamed                           // there is a key to ask about; caused by gather, confirm and deny
	cevGripsExhausted                      // all were asked about; caused by confirm and deny
	cevGripsUnknown                        // caused by gather, confirm and deny: the keys could not be named, or the agent has none of them
	cevAnswerTaken                         // the client has our answer
	cevErrorOccurred                       // a connection, or a violation
	cevCleanupRequested                    // Close
	numCompatEvents

	cevNone = numCompatEvents // an action caused nothing further
)

var compatEventNames = [numCompatEvents]string{
	cevClientLine: "ClientLine", cevClientKeyinfo: "ClientKeyinfo", cevClientList: "ClientList",
	cevAgentLine: "AgentLine", cevAgentInquire: "AgentInquire", cevAgentOK: "AgentOK",
	cevAgentForbidden: "AgentForbidden", cevAgentUnknown: "AgentUnknown", cevAgentNoKey: "AgentNoKey",
	cevAgentERR: "AgentERR", cevGripNamed: "GripNamed", cevGripsExhausted: "GripsExhausted",
	cevGripsUnknown: "GripsUnknown", cevAnswerTaken: "AnswerTaken", cevErrorOccurred: "ErrorOccurred",
	cevCleanupRequested: "CleanupRequested",
}

func (e compatEvent) String() string { return compatEventNames[e] }

// compatAction is what a transition does. It returns the event that it caused.
type compatAction uint8

const (
	cactViolation compatAction = iota // the zero value: a pair that is not listed fails fast
	cactIgnore                        // listed, and means nothing here
	cactNone                          // the move itself is all
	cactWrite                         // the client's line to the agent
	cactPass                          // the agent's line to the client
	cactAskKey                        // HAVEKEY of the key that the client asked about
	cactFound                         // answer the KEYINFO: the agent has it
	cactNotFound                      // answer the KEYINFO: the agent does not have it
	cactGather                        // learn which keys there may be
	cactAskGrip                       // HAVEKEY of the next of them
	cactConfirm                       // the agent has it: on to the next
	cactDeny                          // the agent does not have it: on to the next
	cactList                          // answer the list
	cactRefuse                        // answer what the agent said to the client's own command
	numCompatActions
)

var compatActionNames = [numCompatActions]string{
	cactViolation: "violation", cactIgnore: "ignore", cactNone: "-", cactWrite: "write", cactPass: "pass",
	cactAskKey: "askKey", cactFound: "found", cactNotFound: "notFound", cactGather: "gather",
	cactAskGrip: "askGrip", cactConfirm: "confirm", cactDeny: "deny", cactList: "list", cactRefuse: "refuse",
}

func (a compatAction) String() string { return compatActionNames[a] }

type compatTransition struct {
	next compatState
	do   compatAction
}

// compatTransitions is the whole behaviour of the repair. It is read as the
// session's own table is: what is not listed is a violation, and an error and a
// close are listed everywhere. A line of the client's can come in Passing only,
// since the session waits for each response.
var compatTransitions = [numCompatStates][numCompatEvents]compatTransition{
	compatPassing: {
		cevClientLine:       {compatPassing, cactWrite},
		cevClientKeyinfo:    {compatKeyinfoSent, cactWrite},
		cevClientList:       {compatListSent, cactWrite},
		cevAgentLine:        {compatPassing, cactPass},
		cevAgentInquire:     {compatPassing, cactPass},
		cevAgentOK:          {compatPassing, cactPass},
		cevAgentForbidden:   {compatPassing, cactPass},
		cevAgentUnknown:     {compatPassing, cactPass},
		cevAgentNoKey:       {compatPassing, cactPass},
		cevAgentERR:         {compatPassing, cactPass},
		cevErrorOccurred:    {compatClosed, cactNone},
		cevCleanupRequested: {compatClosed, cactNone},
	},
	compatKeyinfoSent: {
		cevAgentLine:        {compatPassing, cactPass}, // the agent can
		cevAgentInquire:     {compatPassing, cactPass},
		cevAgentOK:          {compatPassing, cactPass},
		cevAgentForbidden:   {compatSeekingKey, cactAskKey},
		cevAgentUnknown:     {compatPassing, cactPass},
		cevAgentNoKey:       {compatPassing, cactPass},
		cevAgentERR:         {compatPassing, cactPass},
		cevErrorOccurred:    {compatClosed, cactNone},
		cevCleanupRequested: {compatClosed, cactNone},
	},
	compatListSent: {
		cevAgentLine:        {compatPassing, cactPass}, // the agent can
		cevAgentInquire:     {compatPassing, cactPass},
		cevAgentOK:          {compatPassing, cactPass},
		cevAgentForbidden:   {compatGathering, cactGather},
		cevAgentUnknown:     {compatGathering, cactGather},
		cevAgentNoKey:       {compatPassing, cactPass},
		cevAgentERR:         {compatPassing, cactPass},
		cevErrorOccurred:    {compatClosed, cactNone},
		cevCleanupRequested: {compatClosed, cactNone},
	},
	compatSeekingKey: {
		cevAgentLine:        {compatSeekingKey, cactIgnore}, // HAVEKEY says nothing else
		cevAgentOK:          {compatAnswering, cactFound},
		cevAgentForbidden:   {compatAnswering, cactRefuse},
		cevAgentUnknown:     {compatAnswering, cactRefuse},
		cevAgentNoKey:       {compatAnswering, cactNotFound},
		cevAgentERR:         {compatAnswering, cactRefuse},
		cevErrorOccurred:    {compatClosed, cactNone},
		cevCleanupRequested: {compatClosed, cactNone},
	},
	compatGathering: {
		cevGripNamed:        {compatSeekingGrips, cactAskGrip},
		cevGripsUnknown:     {compatAnswering, cactRefuse},
		cevErrorOccurred:    {compatClosed, cactNone},
		cevCleanupRequested: {compatClosed, cactNone},
	},
	compatSeekingGrips: {
		cevAgentLine:        {compatSeekingGrips, cactIgnore},
		cevAgentOK:          {compatSeekingGrips, cactConfirm},
		cevAgentForbidden:   {compatAnswering, cactRefuse},
		cevAgentUnknown:     {compatAnswering, cactRefuse},
		cevAgentNoKey:       {compatSeekingGrips, cactDeny},
		cevAgentERR:         {compatAnswering, cactRefuse},
		cevGripNamed:        {compatSeekingGrips, cactAskGrip},
		cevGripsExhausted:   {compatAnswering, cactList},
		cevGripsUnknown:     {compatAnswering, cactRefuse},
		cevErrorOccurred:    {compatClosed, cactNone},
		cevCleanupRequested: {compatClosed, cactNone},
	},
	compatAnswering: {
		cevAnswerTaken:      {compatPassing, cactNone},
		cevErrorOccurred:    {compatClosed, cactNone},
		cevCleanupRequested: {compatClosed, cactNone},
	},
	compatClosed: {
		cevErrorOccurred:    {compatClosed, cactIgnore},
		cevCleanupRequested: {compatClosed, cactIgnore},
	},
}
