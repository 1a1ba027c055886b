package mockprovider

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Hosts of jobs: objects.txtar describes their objects. Jobs make progress when they are read.

// jobHostShape serves the files, batches and fine-tuning jobs of hosts that speak OpenAI's
// chat, each below /hosts/{name}.
var jobHostShape = &shape{name: "job-hosts", match: jobHostMatch, authenticate: jobHostKey}

const jobHosts = "/hosts/"

// jobHostRoutes are the routes of hosts that differ from OpenAI's; other paths are the same.
var jobHostRoutes = sync.OnceValue(func() map[string][]operation {
	return map[string][]operation{
		"groq": {}, "azure": {}, "mistral": routesOf("mistral"),
		"together":  append(routesOf("together"), operation{"POST", "/files/upload", togetherUpload}),
		"fireworks": append(routesOf("fireworks"), fireworksDatasets...),
		"cohere":    routesOf("cohere"),
	}
})

// jobHostKey looks for the key where the host wants it.
func jobHostKey(x *exchange) *apiError {
	if strings.HasPrefix(x.path, jobHosts+"azure/") {
		return azureKey(x)
	}
	return x.authenticate()
}

func jobHostMatch(x *exchange) func(*exchange) *apiError {
	rest, ok := strings.CutPrefix(x.path, jobHosts)
	if !ok {
		return nil
	}
	host, path, _ := strings.Cut(rest, "/")
	routes, ok := jobHostRoutes()[host]
	if !ok {
		return nil
	}
	path = "/" + strings.TrimPrefix(strings.TrimPrefix(path, "openai/"), "v1/")
	return func(x *exchange) *apiError {
		version, _ := url.ParseQuery(x.query)
		if host == "azure" && !azureVersion.MatchString(version.Get("api-version")) {
			return &apiError{status: http.StatusNotFound, code: "404", message: "Resource not found"}
		}
		if strings.HasPrefix(path, "/files") || strings.HasPrefix(path, "/batches") {
			routes = append(slices.Clone(routes), operations()...)
		}
		if handle, _ := routed(x, routes, path); handle != nil {
			return handle(x)
		}
		return &apiError{status: http.StatusNotFound, message: "Not Found"}
	}
}

// togetherUpload accepts a file with its name and type.
func togetherUpload(x *exchange) *apiError {
	u, e := parseForm(x, "file")
	if e != nil {
		return e
	}
	if !slices.Contains([]string{"batch-api", "fine-tune"}, u.fields["purpose"]) || u.fields["file_name"] == "" || u.fields["file_type"] != "jsonl" {
		return badRequest("purpose", "invalid_value", "purpose, file_name and file_type are required")
	}
	return storeFile(x, u, "file-", &resource{kind: "file", purpose: u.fields["purpose"], content: u.files["file"]})
}

// collectionShape is a shape with the routes of a host of objects.txtar; trim returns the
// path for them, or "" for paths of other shapes.
func collectionShape(name string, trim func(string) string, authenticate func(*exchange) *apiError, refuse func(*exchange, *apiError), more ...operation) *shape {
	routes := sync.OnceValue(func() []operation { return append(more, routesOf(name)...) })
	return &shape{name: name + "-jobs", authenticate: authenticate, reject: refuse, match: func(x *exchange) func(*exchange) *apiError {
		path := trim(x.path)
		if path == "" {
			return nil
		}
		handle, known := routed(x, routes(), path)
		if !known {
			return nil
		}
		if handle == nil {
			return func(*exchange) *apiError { return &apiError{status: http.StatusNotFound, message: "Not found"} }
		}
		return handle
	}}
}

func withoutVersion(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "/v1"), "/v1")
}

// messageBatchShape serves Anthropic's Message Batches, bedrockJobsShape the control plane of
// Bedrock, and vertexJobsShape batch prediction and tuning of Vertex AI.
var (
	messageBatchShape = collectionShape("anthropic", withoutVersion, messageBatchKey, nil, operation{"GET", "/messages/batches/{id}/results", messageBatchResults})
	bedrockJobsShape  = collectionShape("aws", bedrockPath, awsAuthenticate, bedrockReject)
	vertexJobsShape   = collectionShape("vertex", withoutVersion, vertexAuthenticate, geminiReject)
)

func messageBatchKey(x *exchange) *apiError {
	if e := x.authenticate(); e != nil {
		return e
	}
	if x.r.Header.Get("Anthropic-Version") == "" {
		return badRequest("", "", "anthropic-version: header is required")
	}
	return nil
}

func vertexAuthenticate(x *exchange) *apiError {
	key, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	if key == VertexToken || strings.HasPrefix(key, "mock-") && key != "mock-denied" {
		return nil
	}
	return &apiError{status: http.StatusUnauthorized, typ: "UNAUTHENTICATED", message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."}
}

func jobBehaviors() map[string]behavior {
	resourceName := func(_ *exchange, n *resource) any { return fireworksAccount + n.kind + "/" + n.id }
	jobState := func(_ *exchange, n *resource) any { return "JOB_STATE_" + collections()[n.kind].state(n) }
	return map[string]behavior{
		"message_batch": {check: checkMessageBatch, finish: runMessageBatch, values: map[string]func(*exchange, *resource) any{
			"results": func(_ *exchange, n *resource) any {
				return "https://api.anthropic.com/v1/messages/batches/" + n.id + "/results"
			},
		}},
		"invocation": {check: checkInvocation, finish: runInvocations},
		"customization": {check: checkCustomization, values: map[string]func(*exchange, *resource) any{
			"base": func(_ *exchange, n *resource) any { return "arn:aws:bedrock:us-east-1::foundation-model/" + n.model },
		}},
		"batchPredictionJobs": {check: checkPrediction, finish: runPredictions, values: map[string]func(*exchange, *resource) any{
			"directory": func(_ *exchange, n *resource) any {
				return n.body.at("outputConfig.gcsDestination.outputUriPrefix").s + "/prediction-model-1"
			},
		}},
		"tuningJobs": {check: func(x *exchange, n *resource) *apiError {
			if size := n.body.at("supervisedTuningSpec.hyperParameters.adapterSize"); size.given() && !strings.HasPrefix(size.s, "ADAPTER_SIZE_") {
				return invalid("Invalid value at 'tuning_job.supervised_tuning_spec.hyper_parameters.adapter_size'")
			}
			return nil
		}},
		"mistral-batch":  {finish: runHostBatch},
		"together-batch": {finish: runHostBatch},
		"mistral-tune":   {check: checkTuning}, "together-tune": {check: checkTuning},
		"batchInferenceJobs":       {check: checkFireworks, finish: runFireworks, values: map[string]func(*exchange, *resource) any{"resource-name": resourceName, "job-state": jobState}},
		"supervisedFineTuningJobs": {check: checkFireworks, values: map[string]func(*exchange, *resource) any{"resource-name": resourceName, "job-state": jobState}},
		"cohere-dataset":           {create: createDataset, values: map[string]func(*exchange, *resource) any{"validation": datasetState, "parts": datasetParts}},
		"embed-job": {check: func(x *exchange, n *resource) *apiError {
			if x.s.objects.get("cohere-dataset", n.name).reads < 2 {
				return badRequest("dataset_id", "", "the dataset is not validated")
			}
			return nil
		}, finish: runEmbedJob},
	}
}

var batchRowName = named{64, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)}

func checkMessageBatch(_ *exchange, n *resource) *apiError {
	ids := map[string]bool{}
	for i, r := range n.body.get("requests").arr {
		id := r.get("custom_id").s
		if !batchRowName.matches(id) || ids[id] {
			return invalid("requests.%d.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$' and be unique", i)
		}
		if ids[id] = true; r.get("params").get("stream").yes {
			return invalid("requests.%d.params.stream: Extra inputs are not permitted", i)
		}
	}
	return nil
}

var jobName = regexp.MustCompile(`^[a-zA-Z0-9](-*[a-zA-Z0-9+.\-])*$`)

// checkAWSJob checks the name, the role and the output of a job.
func checkAWSJob(n *resource, output string) *apiError {
	if !jobName.MatchString(n.body.get("jobName").s) || !strings.Contains(n.body.get("roleArn").s, ":role/") {
		return bedrockInvalid("jobName and roleArn are required")
	}
	if n.output = output; !strings.HasPrefix(output, "s3:/"+mockBucket) {
		return bedrockInvalid("the model, the input and the output must be there")
	}
	return nil
}

// checkInvocation checks that modelInvocationType fits the model: the rows of models that embed
// are not conversations.
func checkInvocation(_ *exchange, n *resource) *apiError {
	if (n.body.get("modelInvocationType").s == "Converse") == strings.Contains(n.model, "embed") {
		return bedrockInvalid("The modelInvocationType does not go with the model")
	}
	return checkAWSJob(n, n.body.at("outputDataConfig.s3OutputDataConfig.s3Uri").s)
}

func checkCustomization(x *exchange, n *resource) *apiError {
	for _, m := range n.body.get("hyperParameters").obj {
		if m.v.kind != text {
			return bedrockInvalid("hyperParameters must be strings")
		}
	}
	for row := range jsonLines(x.s.objects.get("object", n.name).content) {
		if !row.get("prompt").given() && (!row.get("schemaVersion").given() || !row.get("messages").given()) {
			return bedrockInvalid("a line of the input is not valid")
		}
	}
	return checkAWSJob(n, n.body.at("outputDataConfig.s3Uri").s)
}

// vertexModelOf returns the publisher and the model of the path of a publisher's model.
func vertexModelOf(path string) (publisher, model string) {
	parts := strings.Split(path, "/")
	if len(parts) != 4 || parts[0] != "publishers" || parts[2] != "models" {
		return "", ""
	}
	return parts[1], parts[3]
}

var (
	embeddingLine = parseRules("... content!:s requestId!:s")
	claudeLine    = parseRules("... custom_id!:s request!{... anthropic_version!=vertex-2023-10-16 -model}")
	geminiLine    = parseRules("... requestId!:s request!:o")
)

func checkPrediction(x *exchange, n *resource) *apiError {
	publisher, model := vertexModelOf(n.model)
	excluded := n.body.at("instanceConfig.excludedFields")
	rules := geminiLine
	switch n.output = n.body.at("outputConfig.gcsDestination.outputUriPrefix").s; {
	case model == "" || !strings.HasPrefix(n.output, "gs:/"+gcsBucket):
		return invalid("List of found errors: the model or the output is not valid")
	case publisher == "anthropic" && n.body.get("instanceConfig").given():
		return invalid("instanceConfig is not supported for partner models")
	case publisher == "google" && (len(excluded.arr) != 1 || excluded.arr[0].s != "requestId"):
		return invalid("the field requestId is not excluded")
	case strings.Contains(model, "embedding"):
		rules = embeddingLine
	case publisher == "anthropic":
		rules = claudeLine
	}
	for row := range jsonLines(x.s.objects.get("object", n.name).content) {
		if v := rules.check(row, ""); v != nil {
			return invalid("a line of the input is not valid at %s: %s", v.at, row.s)
		}
	}
	return nil
}

func checkTuning(x *exchange, n *resource) *apiError {
	if x.s.objects.get("file", n.name).purpose != "fine-tune" {
		return notFound("File", n.name)
	}
	return nil
}

func checkFireworks(_ *exchange, n *resource) *apiError {
	if !strings.HasPrefix(n.model, "accounts/") {
		return badRequest("model", "", "invalid model")
	}
	return nil
}

// The account mock-account of Fireworks: datasets, which are uploaded and downloaded without a
// key at separate addresses, and jobs, which are stopped by deleting them.
const fireworksAccount = "accounts/mock-account/"

var fireworksDatasets = []operation{
	{"POST", "/datasets", createFireworksDataset},
	{"POST", "/datasets/{id}:getUploadEndpoint", datasetEndpoint},
	{"POST", "/datasets/{id}:validateUpload", validateDataset},
	{"GET", "/datasets/{id}:getDownloadEndpoint", downloadDataset},
}

func createFireworksDataset(x *exchange) *apiError {
	v, e := parseBody(x)
	if e = firstFault(e, openAIError(parseRules("datasetId!!:s dataset!{... userUploaded!:o}").check(v, ""))); e != nil {
		return e
	}
	id := fireworksAccount + "datasets/" + v.get("datasetId").s
	if x.s.objects.get("dataset", id) != nil {
		return badRequest("datasetId", "", "the dataset exists")
	}
	keep(x, &resource{id: id, kind: "dataset"})
	return listed(x, fill(`{"name":$,"state":"UPLOADING"}`, id))
}

// fireworksDataset is the dataset that the path names.
func fireworksDataset(x *exchange) (*resource, *apiError) {
	n := x.s.objects.get("dataset", fireworksAccount+"datasets/"+x.vars[0])
	if n == nil {
		return nil, notFound("Dataset", x.vars[0])
	}
	return n, nil
}

func datasetEndpoint(x *exchange) *apiError {
	_, e := fireworksDataset(x)
	v, bad := parseBody(x)
	if e = firstFault(e, bad); e != nil {
		return e
	}
	name := x.vars[0] + ".jsonl"
	if size, ok := v.get("filenameToSize").get(name).integer(); !ok || size < 1 {
		return badRequest("filenameToSize", "", "filenameToSize is required")
	}
	return listed(x, fill(`{"filenameToSignedUrls":{$:$}}`, name, signedURL(x, x.vars[0])))
}

func validateDataset(x *exchange) *apiError {
	n, e := fireworksDataset(x)
	_, bad := parseBody(x)
	if e = firstFault(e, bad); e != nil {
		return e
	}
	signed := x.s.objects.get("signed", x.vars[0])
	if signed == nil {
		return badRequest("", "", "nothing was uploaded")
	}
	n.content = signed.content
	return listed(x, []byte("{}"))
}

func downloadDataset(x *exchange) *apiError {
	n, e := fireworksDataset(x)
	if e != nil {
		return e
	}
	replace(x, &resource{id: x.vars[0], kind: "signed", content: n.content})
	return listed(x, fill(`{"filenameToSignedUrls":{"README.md":"http://127.0.0.1:1/","BIJOutputSet.jsonl":$}}`, signedURL(x, x.vars[0])))
}

// signedShape serves the addresses that datasets are uploaded and downloaded at.
var signedShape = &shape{name: "signed", match: signedMatch, authenticate: func(x *exchange) *apiError {
	if x.r.Header.Get("Authorization") != "" || !strings.Contains(x.query, "signature=") {
		return &apiError{status: http.StatusForbidden, message: "the address is signed and takes no key"}
	}
	return nil
}}

func signedMatch(x *exchange) func(*exchange) *apiError {
	name, ok := strings.CutPrefix(x.path, "/signed/")
	if !ok {
		return nil
	}
	return func(x *exchange) *apiError {
		if x.r.Method == http.MethodPut {
			size := strconv.Itoa(len(x.body))
			if x.r.Header.Get("X-Goog-Content-Length-Range") != size+","+size {
				return &apiError{status: http.StatusBadRequest, message: "the length is not the one that was announced"}
			}
			keep(x, &resource{id: name, kind: "signed", content: x.body})
			return nil
		}
		n := x.s.objects.get("signed", name)
		if n == nil {
			return &apiError{status: http.StatusNotFound, message: "No such object"}
		}
		_, _ = x.w.Write(n.content)
		return nil
	}
}

// signedURL is such an address.
func signedURL(x *exchange, name string) string {
	return fmt.Sprintf("http://%s/signed/%s?signature=mock", x.r.Host, name)
}
