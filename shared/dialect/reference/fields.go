package reference

import "strings"

// Kind is what a reference names.
type Kind string

const (
	Model        Kind = "model"
	URL          Kind = "url"            // fetched by the provider
	Storage      Kind = "storage object" // in S3 or Cloud Storage, read with the provider's account
	File         Kind = "file"
	Batch        Kind = "batch"
	Response     Kind = "response"
	Message      Kind = "message" // a turn of a thread of Messages
	Conversation Kind = "conversation"
	Thread       Kind = "thread"
	Assistant    Kind = "assistant"
	VectorStore  Kind = "vector store"
	Container    Kind = "container"
	Cache        Kind = "cached content"
	Interaction  Kind = "interaction"
	Continuation Kind = "continuation" // of an interaction
	Session      Kind = "session"
	Prompt       Kind = "prompt"
	Skill        Kind = "skill"
	Voice        Kind = "voice"
	Consent      Kind = "consent"
	Video        Kind = "video"
	Audio        Kind = "audio"
	Dataset      Kind = "dataset"
	Connector    Kind = "connector"
	DataStore    Kind = "data store"
	Environment  Kind = "environment"
	Job          Kind = "job"
	Evaluation   Kind = "evaluation"
	Memory       Kind = "memory store"
	Agent        Kind = "agent"
	Vault        Kind = "vault"
	Profile      Kind = "user profile"
)

// form is how a value names what it refers to.
type form uint8

const (
	text    form = iota // the id itself
	address             // a file of Gemini's, an object of a cloud's storage, or a URL
	token               // an opaque secret, known by its hash
	model
)

// field is a row of the table.
type field struct {
	kind Kind
	form form
	// context: the provider adds stored or fetched content to the input of the model, so
	// that the size of the request contains nothing about the number of its tokens.
	context bool
	// prefixes of the ids of a field with values that may also be plain names known to
	// every account: voices and skills of the provider.
	prefixes []string
	// settings are values of a field that name no object.
	settings []string
}

// fields is the table. A key is the canonical name of a field (see canonical), or of its
// object and itself with a dot between: the field of elements of a list belongs to the
// name of the list. A row without a kind refers to nothing.
var fields = map[string]field{
	"fileid":                {kind: File, context: true},
	"fileids":               {kind: File, context: true},
	"inputfileid":           {kind: File, context: true}, // its rows are billed
	"inputfiles":            {kind: File, context: true},
	"trainingfile":          {kind: File, context: true},
	"trainingfiles.fileid":  {kind: File, context: true},
	"validationfile":        {kind: File, context: true},
	"validationfiles":       {kind: File, context: true},
	"fileuri":               {kind: File, form: address, context: true},
	"filename":              {kind: File, form: address, context: true},
	"src":                   {kind: File, form: address, context: true}, // of batches
	"fileurl":               {kind: File, form: address, context: true},
	"imageurl":              {kind: File, form: address, context: true},
	"videourl":              {kind: File, form: address, context: true},
	"audiourl":              {kind: File, form: address, context: true},
	"documenturl":           {kind: File, form: address, context: true},
	"documenturi":           {kind: File, form: address, context: true},
	"imageuri":              {kind: File, form: address, context: true},
	"uri":                   {kind: File, form: address, context: true},
	"uris":                  {kind: File, form: address, context: true},
	"source.url":            {kind: File, form: address, context: true},
	"imageurl.url":          {kind: File, form: address, context: true},
	"videourl.url":          {kind: File, form: address, context: true},
	"audiourl.url":          {kind: File, form: address, context: true},
	"fileurl.url":           {kind: File, form: address, context: true},
	"documenturl.url":       {kind: File, form: address, context: true},
	"document.url":          {kind: File, form: address, context: true},
	"web.uri":               {kind: File, form: address}, // in results that are sent again
	"maps.uri":              {kind: File, form: address},
	"retrievedcontext.uri":  {kind: File, form: address},
	"citations.uri":         {kind: File, form: address},
	"authorattribution.uri": {kind: File, form: address},
	"gcsuri":                {kind: File, form: address, context: true},
	"outputuriprefix":       {kind: Storage, form: address},
	"bigquerydestination":   {kind: Storage, form: address},
	"trainingdataseturi":    {kind: Storage, form: address, context: true},
	"gcssource.uris":        {kind: Storage, form: address, context: true},

	"batchid":                     {kind: Batch},
	"previousresponseid":          {kind: Response, context: true},
	"responseid":                  {kind: Response, context: true},
	"comparisonresponseid":        {kind: Response},
	"previousmessageid":           {kind: Message, context: true},
	"conversation":                {kind: Conversation, context: true, settings: []string{"auto", "none"}},
	"conversation.id":             {kind: Conversation, context: true},
	"conversationid":              {kind: Conversation, context: true},
	"threadid":                    {kind: Thread, context: true},
	"sessionthreadid":             {kind: Thread, context: true},
	"assistantid":                 {kind: Assistant, context: true},
	"vectorstoreid":               {kind: VectorStore, context: true},
	"vectorstoreids":              {kind: VectorStore, context: true},
	"filesearchstore":             {kind: VectorStore, context: true},
	"filesearchstorename":         {kind: VectorStore, context: true},
	"filesearchstorenames":        {kind: VectorStore, context: true},
	"documentname":                {kind: VectorStore, context: true},
	"libraryids":                  {kind: VectorStore, context: true},
	"ragcorpus":                   {kind: DataStore, context: true},
	"ragcorpora":                  {kind: DataStore, context: true},
	"ragfileids":                  {kind: DataStore, context: true},
	"datastore":                   {kind: DataStore, context: true},
	"datastores":                  {kind: DataStore, context: true},
	"vertexaisearch.engine":       {kind: DataStore, context: true},
	"vertexaisearchconfig.engine": {kind: DataStore, context: true},
	"semanticretriever.source":    {kind: DataStore, context: true},
	"knowledgebaseid":             {kind: DataStore, context: true},
	"container":                   {kind: Container, context: true, settings: []string{"auto"}},
	"container.id":                {kind: Container, context: true},
	"containerid":                 {kind: Container, context: true},
	"cachedcontent":               {kind: Cache, context: true},
	"previousinteractionid":       {kind: Interaction, context: true},
	"interactionid":               {kind: Interaction, context: true},
	"continuationtoken":           {kind: Continuation, form: token, context: true},
	"sessionids":                  {kind: Session, context: true},
	"memoryid":                    {kind: Memory, context: true},
	"memoryversionid":             {kind: Memory, context: true},
	"environmentids":              {kind: Environment},
	"vaultid":                     {kind: Vault},
	"vaultids":                    {kind: Vault},
	"userprofileid":               {kind: Profile},
	"userprofileids":              {kind: Profile},
	"outputdatasetid":             {kind: Dataset},
	"vertexdatasetname":           {kind: Dataset},
	"agent":                       {kind: Agent, context: true, prefixes: []string{"agents/", "agent_", "projects/"}}, // others are the provider's own
	"baseagent":                   {kind: Agent, context: true, prefixes: []string{"agents/", "agent_", "projects/"}},
	"agentids":                    {kind: Agent},
	"agent.id":                    {kind: Agent, context: true},
	"agents.id":                   {kind: Agent, context: true},
	"voicename":                   {kind: Voice, prefixes: []string{"voice_", "voices/"}},
	"basevoice":                   {kind: Voice, prefixes: []string{"voice_", "voices/"}},
	"tunedteachermodelsource":     {kind: Model, form: model},
	"sessionresumption.handle":    {kind: Session, form: token, context: true},
	"prompt.id":                   {kind: Prompt, context: true},
	"prompttemplatename":          {kind: Prompt, context: true},
	"skillid":                     {kind: Skill, context: true, prefixes: []string{"skill_"}},
	"consent":                     {kind: Consent, prefixes: []string{"cons_"}},
	"voice":                       {kind: Voice, prefixes: []string{"voice_", "voices/"}},
	"voice.id":                    {kind: Voice, prefixes: []string{"voice_", "voices/"}},
	"voiceid":                     {kind: Voice, prefixes: []string{"voice_", "voices/"}},
	"video":                       {kind: Video, context: true, prefixes: []string{"video_"}},
	"video.id":                    {kind: Video, context: true, prefixes: []string{"video_"}},
	"videoid":                     {kind: Video, context: true},
	"characterid":                 {kind: Video, context: true},
	"audio.id":                    {kind: Audio, context: true},
	"dataset":                     {kind: Dataset, prefixes: []string{"datasets/", "projects/"}},
	"datasetid":                   {kind: Dataset, context: true},
	"inputdatasetid":              {kind: Dataset, context: true},
	"vertexdatasetresource":       {kind: Dataset, context: true},
	"connectors.id":               {kind: Connector, context: true},
	"tunnelid":                    {kind: Connector, context: true}, // of a tool server in the account's network
	"environment":                 {kind: Environment, context: true},
	"tools.environment":           {}, // of a computer: browser, linux
	"environmentid":               {kind: Environment, context: true},
	"environmenttemplateid":       {kind: Environment, context: true},
	"fromenvironment":             {kind: Environment},
	"baseenvironment":             {kind: Environment, context: true},
	"memorystoreid":               {kind: Memory, context: true},
	"operationname":               {kind: Job},
	"invocationarn":               {kind: Job},
	"evalid":                      {kind: Evaluation},
	"runid":                       {kind: Job, context: true},
	"agentid":                     {kind: Agent, context: true},
	"sessionid":                   {kind: Session, context: true, prefixes: []string{"sess_", "sesn_", "session_"}},
	"fallbackmodel":               {kind: Model, form: model},
	"fallbacks":                   {kind: Model, form: model},
	"finetunedmodelcheckpoint":    {kind: Model, form: model},
	"pretunedmodelcheckpointid":   {kind: Model, form: model},
	"finetunedmodelid":            {kind: Model, form: model},
}

// addressSuffixes end the canonical names of fields that hold addresses: of tool servers,
// of outputs, in results that are sent again.
var addressSuffixes = []string{"uri", "uris", "url", "urls"}

// modelSuffixes end the canonical names of fields that name models, except those of
// notModels.
var modelSuffixes = []string{"model", "models", "modelid", "modelids", "modelname"}

// fallbackKeys are the canonical names of fields with lists of replacement models.
var fallbackKeys = []string{"fallbacks"}

// notModels are canonical names that end like those of models.
var notModels = map[string]bool{}

// opaque are objects with data of the caller's own, in which the names of fields mean
// nothing: arguments and results of tools, and schemas. A key is as in the table.
var opaque = map[string]bool{
	"metadata": true, "requestmetadata": true, "schema": true, "inputschema": true, "jsonschema": true, "responseschema": true, "parametersjsonschema": true,
	"arguments": true, "args": true, "json": true, "functionresponse.response": true, "functionresponses.response": true,
}

// opaqueBelow are opaque everywhere but in the outermost object, and in a request of a batch,
// where they are the input of a request and the parameters of a prediction.
var opaqueBelow = map[string]bool{"input": true, "parameters": true}

// canonical returns a key in lower case and without underscores.
func canonical(key string) string {
	return strings.ToLower(strings.ReplaceAll(key, "_", ""))
}
