package content

import (
	"net/url"
	"strings"
	"sync"

	"gateway/shared/wire"
)

// treatment is how the reader handles the value of a field.
type treatment uint8

const (
	judged        treatment = iota // text; the default for fields that are not in the table
	identifier                     // exempt while the value looks like an identifier
	address                        // exempt while the value looks like a URL
	encoded                        // base64: exempt unless it decodes to text
	opaque                         // exempt while the value has no white space
	unsent                         // exempt beside the messages
	repeated                       // repeats a text of the response, and is removed when that text changes
	blocks                         // the same, but may contain more
	secret                         // exempt in definitions: a credential for another host
	discriminator                  // type or role: an identifier that classifies its object
	instruction                    // instructions to the model
	definition                     // tools and formats of responses
	schema                         // in definitions one text with its keys; otherwise parameters of a call
	list                           // messages, items or texts; input of a call
	choice                         // alternative responses
	callArguments                  // arguments of a call, one text
	callResult                     // result of a call
	structure                      // result of a call that is an object, one text
	reasoning                      // thoughts of a model
	attached                       // a document; the model reads its name
	free                           // the client names the fields: every string is text, and names that the model reads
	delivery                       // of an agent: notification address with credentials
)

// table has a row for each known field. Names are lowercase without underscores and hyphens, so
// that every spelling of a name has one row.
//
// Fields are exempt for one of these reasons; exempt.txt in testdata lists the reason of each.
// Identifiers and enumerated values contain no text: a long value or one with white space is
// judged anyway. URLs, signatures and base64 that does not decode to text cannot be read. The
// model does not see fields of unsent.
var table = sync.OnceValue(func() map[string]treatment {
	out := make(map[string]treatment, 256)
	for does, names := range map[treatment]string{
		discriminator: "type role",
		identifier: `id ids object model modelversion name status index finishreason stopreason stopsequence servicetier serverlabel
			systemfingerprint phase reasoningeffort effort verbosity toolchoice functioncall detail quality size style voice
			background moderation encodingformat inputtype truncation truncate embeddingtypes modalities mimetype mediatype contenttype
			include promptcacheretention ttl format mode category threshold probability severity blockreason voicename languagecode
			language thinkinglevel mediaresolution responsemodalities responsemimetype allowedfunctionnames allowedtools tasktype latency
			trace guardrailidentifier guardrailversion additionalmodelresponsefieldpaths bucketowner responsetype safetymode
			citationquality rankfields searchcontextsize speed timezone country createdat executiontime completionwindow endpoint purpose
			outcome requireapproval environment ranker inputfidelity imagesize aspectratio modality traffictype cachetype
			timestampgranularities event cachedcontent apiversion method promptcacheoptions sizes qualities createdby
			generatesummary syntax editformat container strategy version kind state timestamp protocolversion preferredtransport protocolbinding
			outputmodalities eagerness conversation`,
		address:       "url uri imageurl fileurl fileuri serverurl documenturl audiourl videourl urls",
		encoded:       "data bytes filedata b64json imagebase64 imagedata audiodata base64 embedding embeddings partialimageb64 blob image images mask audio",
		opaque:        "signature thoughtsignature encryptedcontent redactedcontent encryptedstdout encryptedindex requeststate obfuscation handle",
		unsent:        "metadata requestmetadata labels user safetyidentifier promptcachekey stop stopsequences usage usagemetadata billedunits meta",
		repeated:      "logprobs logprobsresult",
		blocks:        "contentblocks",
		secret:        "authorization authorizationtoken headers apikey",
		instruction:   "system instructions systeminstruction systemprompt preamble developer additionalinstructions",
		definition:    "tools functions responseformat outputformat outputconfig toolconfig mcpservers connectors generationconfig documentannotationformat bboxannotationformat",
		schema:        "parameters inputschema outputschema schema parametersjsonschema responsejsonschema responseschema jsonschema parameterdefinitions grammar",
		list:          "messages input contents chathistory additionalmessages items",
		choice:        "choices candidates generations",
		callArguments: "arguments args",
		callResult:    "output outputs result results stdout stderr tooloutputs",
		structure:     "response json structuredcontent",
		reasoning:     "thinking reasoning reasoningcontent reasoningdetails reasoningtext summary",
		attached:      "document file",
		free:          "variables promptvariables documents toolresults attributes env",
		delivery:      "configuration pushnotificationconfig",
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = does
		}
	}
	return out
})

// repeatsRequest reports whether an object of a kind repeats the instructions of the request
// that it was made for.
func repeatsRequest(object string) bool {
	return strings.HasPrefix(object, "response") || strings.HasPrefix(object, "thread.run") || strings.HasPrefix(object, "assistant")
}

// echoed are the fields of a response that repeat its request; instructions do so only in some
// objects.
var echoed = map[string]bool{"tools": true, "toolchoice": true, "prompt": true, "metadata": true, "reasoning": true, "text": true}

// longest is the length limit of a name in the table, in bytes.
const longest = 40

// nameOf appends the normalized name of a field.
func nameOf(dst, key []byte) []byte {
	for _, c := range key[:min(len(key), longest)] {
		switch {
		case c == '_' || c == '-':
		case 'A' <= c && c <= 'Z':
			dst = append(dst, c+'a'-'A')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// treatmentOf returns the treatment of a field. name is the normalized key.
func treatmentOf(name, key []byte) treatment {
	if t, ok := table()[string(name)]; ok && len(key) <= longest {
		return t
	}
	k := string(key)
	for _, end := range [...]string{"_id", "_ids", "Id", "Ids", "ID", "IDs"} {
		if strings.HasSuffix(k, end) {
			return identifier
		}
	}
	for _, end := range [...]string{"_url", "_uri", "Url", "Uri", "URL", "URI"} {
		if strings.HasSuffix(k, end) {
			return address
		}
	}
	return judged
}

// queryNames are query parameters that providers do not show to a model, in lower case. A value
// that does not look like an identifier is judged anyway, except for credentials.
var queryNames = func() map[string]treatment {
	out := map[string]treatment{}
	for does, names := range map[treatment]string{
		identifier: "api-version alt beta order limit after before after_id before_id offset page pagesize page_size pagetoken page_token include include[] status purpose stream starting_after prettyprint $alt fields",
		secret:     "key api_key api-key access_token token sig signature x-goog-api-key",
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = does
		}
	}
	return out
}()

// HidePath returns an escaped path with a star in place of each segment that Address would return
// as a text.
func HidePath(escaped string) string {
	segments := strings.Split(escaped, "/")
	for i, s := range segments {
		if plain, err := url.PathUnescape(s); err != nil || !isIdentifier([]byte(plain)) {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// Address returns the texts of a decoded path and of a query string as a JSON object, or nil if
// there are none. Segments of the path that can be identifiers are not texts. A malformed query is
// one text.
func Address(path, query string) []byte {
	doc := []byte{'{'}
	add := func(value string) {
		doc = append(wire.AppendJSONString(append(doc, `"text":`...), strings.ToValidUTF8(value, "\ufffd")), ',')
	}
	for segment := range strings.SplitSeq(path, "/") {
		if !isIdentifier([]byte(segment)) {
			add(segment)
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		if query == "" {
			break
		}
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		switch does := queryNames[strings.ToLower(name)]; {
		case nameErr != nil || valueErr != nil:
			add(pair)
		case does == secret, strings.HasPrefix(strings.ToLower(name), "x-amz-"), does == identifier && isIdentifier([]byte(value)):
		default:
			if !isIdentifier([]byte(name)) || value == "" {
				add(name)
			}
			if value != "" {
				add(value)
			}
		}
	}
	if len(doc) == 1 {
		return nil
	}
	doc[len(doc)-1] = '}'
	return doc
}
