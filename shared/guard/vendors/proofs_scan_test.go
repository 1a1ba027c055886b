package vendors

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// acuvityKey is a token whose claims name https://apex.acuvity.example.
var acuvityKey = "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"opaque":{"apex-url":"https://apex.acuvity.example"}}`)) + ".the-key"

type catoBody struct {
	Messages []struct {
		Role    string
		Content []struct{ Type, Text string }
	}
}

type crowdBody struct {
	Guard_input                                      map[string]any
	Event_type, App_id, User_id, LLM_provider, Model string
	Extra_info                                       struct{ User_name string }
}

type lakeraBody struct {
	Messages           messages
	Payload, Breakdown bool
	Project_id         string
}

type lassoBody struct {
	Messages                       messages
	MessageType, SessionID, UserID string
}

type airsBody struct {
	TR_id      string
	AI_profile struct{ Profile_name, Profile_id string }
	Metadata   struct{ AI_model, App_user, App_name string }
	Contents   []struct{ Prompt, Response string }
}

type pillarBodyShape struct {
	Message  string
	Scanners struct{ Prompt_injection, PII, Secrets, Toxic_language, Invisible_characters bool }
}

type protectBody struct {
	Prompt, Response, User string
	User_groups            []string
	Policy                 map[string]any
}

// alibabaSigned tells what is wrong with a form of Alibaba Cloud, of which it proves the
// signature in its own way.
func alibabaSigned(service string) func(*http.Request, []byte) string {
	return func(_ *http.Request, body []byte) string {
		form, err := url.ParseQuery(string(body))
		if err != nil || len(form) != 11 || form.Get("Service") != service || form.Get("Action") != "MultiModalGuard" || form.Get("Version") != "2022-03-02" || form.Get("AccessKeyId") != "the-id" || form.Get("SignatureNonce") == "" {
			return "the form " + string(body)
		}
		var parameters struct{ Content string }
		if json.Unmarshal([]byte(form.Get("ServiceParameters")), &parameters) != nil || parameters.Content != sampleText {
			return "the parameters " + form.Get("ServiceParameters")
		}
		signature := form.Get("Signature")
		form.Del("Signature")
		escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
		mac := hmac.New(sha1.New, []byte("the-secret&"))
		mac.Write([]byte("POST&" + escape("/") + "&" + escape(strings.ReplaceAll(form.Encode(), "+", "%20"))))
		if want := base64.StdEncoding.EncodeToString(mac.Sum(nil)); signature != want {
			return "the signature " + signature
		}
		return ""
	}
}

var scanProofs = []proof{
	{id: "acuvity.scan", params: `{"pii_redact":true,"pii_categories":["email_address"],"toxic_threshold":0.8}`, creds: `{"apiKey":"` + acuvityKey + `"}`, host: "apex.acuvity.example", path: "/_acuvity/scan",
		header: map[string]string{"Authorization": "Bearer " + acuvityKey}, texts: []string{"mail ann@example.com", "", "and sun"},
		shape: struct {
			Anonymization        string
			Messages, Redactions []string
			Type                 string
		}{}, golden: `{"anonymization":"FixedSize","messages":["mail ann@example.com","","and sun"],"redactions":["email_address"],"type":"Input"}`,
		passes: []string{`{"extractions":[{"data":"mail ann@example.com","exploits":{"prompt_injection":0.2},"malcontents":{"toxic":0.7},"languages":{"english":0.9}},{},{"detections":[]}]}`},
		fails: map[string]string{`{"extractions":[{"exploits":{"jail_break":0.5}},{},{}]}`: "jail_break", `{"extractions":[{"malcontents":{"toxic":0.8}},{},{}]}`: "toxic", `{"extractions":[{"languages":{"german":1}},{},{}]}`: "language/german",
			`{"extractions":[{},{},{"detections":[{"type":"Secret","name":"aws_key","score":1}]}]}`:                        "secret/aws_key",
			`{"extractions":[{"data":"mail ann@example.com","detections":[{"type":"PII","name":"email_address"}]},{},{}]}`: "pii/email_address"},
		masks: map[string]string{`{"extractions":[{"data":"mail XXXX","detections":[{"type":"PII","name":"email_address","score":1}]},{"data":""},{"data":"and sun"}]}`: "mail XXXX//"},
		wrong: []string{`{"extractions":[]}`, `{"extractions":[{"exploits":{"jail_break":"1"}},{},{}]}`, `{"extractions":[{"detections":[{}]},{},{}]}`}},
	{id: "akto.scan", creds: `{"apiKey":"the-key","apiDomain":"https://1-guardrails.akto.io/"}`, host: "1-guardrails.akto.io", path: "/api/validate/request", header: key, shape: struct{ Payload string }{},
		golden: `{"payload":"{\"model\":\"m\",\"prompt\":\"mail ann@example.com 🙂 now\"}"}`, passes: []string{`{"Allowed":true,"Modified":false,"Reason":""}`},
		fails: map[string]string{`{"Allowed":false,"Reason":"ann@example.com"}`: "not_allowed"}, wrong: []string{`{"Allowed":"yes"}`}},
	{id: "akto.scan", kind: "complete", params: `{"deny":false}`, creds: `{"apiKey":"the-key","apiDomain":"a.akto.io"}`, host: "a.akto.io", path: "/api/validate/request", header: key, shape: struct{ Payload string }{},
		golden: `{"payload":"{\"model\":\"m\",\"prompt\":\"mail ann@example.com 🙂 now\"}"}`, passes: []string{`{"Allowed":true}`, `{"Allowed":false}`}},
	{id: "alibaba-cloud-ai.guard", creds: `{"accessKeyId":"the-id","accessKeySecret":"the-secret"}`, host: "green-cip.cn-shanghai.aliyuncs.com", path: "/", form: true, check: alibabaSigned("query_security_check_pro"),
		passes: []string{`{"Code":200,"Message":"OK","RequestId":"1","Data":{"Suggestion":"pass","Detail":[]}}`, `{"Code":200,"Data":{"Suggestion":"watch","Detail":[{"Type":"promptAttack","Suggestion":"watch","Level":"low"}]}}`},
		fails:  map[string]string{`{"Code":200,"Data":{"Suggestion":"block","Detail":[{"Type":"contentModeration","Suggestion":"block"}]}}`: "contentModeration", `{"Code":200,"Data":{"Suggestion":"mask"}}`: "mask"},
		wrong:  []string{`{"Code":401,"Message":"the-secret is wrong"}`, `{"Code":200}`, `{"Code":200,"Data":{"Suggestion":"?"}}`}},
	{id: "alibaba-cloud-ai.guard", behind: true, texts: []string{sampleText}, creds: `{"accessKeyId":"the-id","accessKeySecret":"the-secret","regionId":"ap-southeast-1"}`, host: "green-cip.ap-southeast-1.aliyuncs.com", path: "/", form: true,
		check: alibabaSigned("response_security_check_cb"), passes: []string{`{"Code":200,"Data":{"Suggestion":"pass"}}`}, fails: map[string]string{`{"Code":200,"Data":{"Suggestion":"block"}}`: "block"}},
	{id: "cato.scan", params: `{"userEmail":"u@c.example"}`, creds: keyed, host: "api.aisec.catonetworks.com", path: "/fw/v1/analyze",
		header: map[string]string{"Authorization": "Bearer the-key", "X-Cato-Call-Id": "the-trace", "X-Cato-User-Email": "u@c.example"}, shape: catoBody{},
		golden: `{"messages":[{"content":[{"text":"be kind","type":"text"}],"role":"system"},{"content":[{"text":"mail ann@example.com 🙂 now","type":"text"}],"role":"user"}]}`,
		passes: []string{`{"analysis_result":{},"required_action":{"action_type":"monitor_action"}}`, `{"analysis_result":{},"required_action":null}`},
		fails:  map[string]string{`{"required_action":{"action_type":"block_action","detection_message":"ann@example.com"}}`: "block_action"},
		masks:  map[string]string{`{"required_action":{"action_type":"anonymize_action","chat_redaction_result":{"redacted_new_message":{"role":"user","content":"mail [NAME]"}}}}`: "mail [NAME]", `{"required_action":{"action_type":"anonymize_action"},"redacted_chat":{"redacted_new_message":{"content":"mail x"}}}`: "mail x"},
		wrong:  []string{`{"required_action":{"action_type":"other"}}`, `{"required_action":{"action_type":"anonymize_action"}}`}},
	{id: "crowdstrike-aidr.guardChatCompletions", creds: `{"apiKey":"the-key","baseUrl":"https://api.crowdstrike.com/aidr"}`, host: "api.crowdstrike.com", path: "/aidr/v1/guard_chat_completions", header: key, shape: crowdBody{},
		golden: `{"app_id":"gateway","event_type":"input","extra_info":{},"guard_input":{"model":"m","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"mail ann@example.com 🙂 now"}]},"llm_provider":"openai","model":"m","user_id":"ann"}`,
		passes: []string{`{"status":"Success","result":{"blocked":false,"transformed":false,"policy":"p"}}`},
		fails:  map[string]string{`{"status":"Success","result":{"blocked":true,"policy":"p1"}}`: "p1", `{"status":"Success","result":{"blocked":false,"transformed":true,"policy":"p2","guard_output":{"messages":[]}}}`: "p2"},
		bodies: map[string]string{`{"status":"Success","result":{"blocked":false,"transformed":true,"policy":"p2","guard_output":{"messages":[{"role":"user","content":"mail x"}]}}}`: `{"messages":[{"content":"mail x","role":"user"}]}`},
		wrong:  []string{`{"status":"Accepted","result":{"blocked":false}}`, `{"status":"Success","result":{}}`}},
	{id: "crowdstrike-aidr.guardChatCompletions", behind: true, creds: `{"apiKey":"the-key","baseUrl":"https://eu.crowdstrike.example"}`, host: "eu.crowdstrike.example", path: "/v1/guard_chat_completions", header: key, shape: crowdBody{},
		golden: `{"app_id":"gateway","event_type":"output","extra_info":{},"guard_input":{"choices":[{"index":0,"message":{"role":"assistant","content":"write to bob@example.com"}}]},"llm_provider":"openai","model":"m","user_id":"ann"}`,
		passes: []string{`{"status":"Success","result":{"blocked":false}}`}, fails: map[string]string{`{"status":"Success","result":{"blocked":true}}`: "policy"},
		bodies: map[string]string{`{"status":"Success","result":{"blocked":false,"transformed":true,"guard_output":{"choices":[]}}}`: `{"choices":[]}`}},
	{id: "javelin.guardrails", creds: `{"apiKey":"the-key","application":"app","domain":"api.javelin.live"}`, host: "api.javelin.live", path: "/v1/guardrails/apply", header: map[string]string{"X-Javelin-Apikey": "the-key", "X-Javelin-Application": "app"},
		shape: struct {
			Input            struct{ Text string }
			Config, Metadata struct{}
		}{}, golden: `{"config":{},"input":{"text":"mail ann@example.com 🙂 now"},"metadata":{}}`, passes: []string{`{"assessments":[]}`, `{"assessments":[{"trustsafety":{"request_reject":false,"results":{}}}]}`},
		fails: map[string]string{`{"assessments":[{"trustsafety":{"request_reject":false}},{"promptinjectiondetection":{"request_reject":true}}]}`: "promptinjectiondetection"}, wrong: []string{`{"assessments":[{"a":{}}]}`, `{"assessments":[5]}`}},
	{id: "lakera.guard", params: `{"projectID":"p"}`, creds: keyed, host: "api.lakera.ai", path: "/v2/guard", header: key, shape: lakeraBody{}, texts: []string{"é mail ann@example.com", "", "bob@example.com"},
		golden: `{"breakdown":true,"messages":[{"role":"user","content":"é mail ann@example.com"},{"role":"user","content":"bob@example.com"}],"payload":true,"project_id":"p"}`,
		passes: []string{`{"flagged":false,"payload":[],"breakdown":[]}`},
		fails: map[string]string{`{"flagged":true,"breakdown":[{"detector_type":"prompt_attack","detected":true},{"detector_type":"pii/email","detected":true}],"payload":[{"message_id":0,"start":7,"end":22,"detector_type":"pii/email"}]}`: "prompt_attack",
			`{"flagged":true,"breakdown":[{"detector_type":"pii/email","detected":true}],"payload":[{"message_id":1,"start":0,"end":99}]}`: "flagged"},
		masks: map[string]string{`{"flagged":true,"breakdown":[{"detector_type":"pii/email","detected":true},{"detector_type":"prompt_attack","detected":false}],"payload":[{"message_id":0,"start":7,"end":22,"detector_type":"pii/email","text":"ann@example.com"},{"message_id":1,"start":0,"end":15,"detector_type":"pii/email"}]}`: "é mail [MASKED_EMAIL]//[MASKED_EMAIL]"},
		wrong: []string{`{"flagged":true,"breakdown":[{}]}`, `{"flagged":true,"payload":[{"start":"1"}]}`}},
	{id: "lakera.guard", behind: true, params: `{"endInclusive":true}`, creds: `{"apiKey":"the-key","apiBase":"https://eu.lakera.example"}`, host: "eu.lakera.example", path: "/v2/guard", header: key, shape: lakeraBody{},
		golden: `{"breakdown":true,"messages":[{"role":"assistant","content":"write to bob@example.com"}],"payload":true}`, passes: []string{`{"flagged":false}`},
		masks: map[string]string{`{"flagged":true,"breakdown":[{"detector_type":"pii/email","detected":true}],"payload":[{"message_id":0,"start":9,"end":23,"detector_type":"pii/e-mail"}]}`: "write to [MASKED_E_MAIL]"}},
	{id: "lasso.classify", params: `{"conversationId":"c","userId":"u"}`, creds: keyed, host: "server.lasso.security", path: "/gateway/v3/classify", header: map[string]string{"Lasso-Api-Key": "the-key"}, shape: lassoBody{},
		golden: `{"messageType":"PROMPT","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"mail ann@example.com 🙂 now"}],"sessionId":"c","userId":"u"}`,
		passes: []string{`{"deputies":{},"findings":{},"violations_detected":false}`, `{"violations_detected":true,"findings":{"pattern-detection":[{"action":"WARN","severity":"LOW"}]}}`},
		fails:  map[string]string{`{"violations_detected":true,"findings":{"jailbreak":[{"action":"BLOCK"}]}}`: "jailbreak", `{"violations_detected":true}`: "violation"}, wrong: []string{`{"violations_detected":false,"findings":{"a":[{}]}}`}},
	{id: "lasso.classify", behind: true, creds: `{"apiKey":"the-key","apiEndpoint":"https://own.lasso.example"}`, host: "own.lasso.example", path: "/gateway/v3/classify", header: map[string]string{"Lasso-Api-Key": "the-key"}, shape: lassoBody{},
		golden: `{"messageType":"COMPLETION","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"mail ann@example.com 🙂 now"},{"role":"assistant","content":"write to bob@example.com"}]}`,
		passes: []string{`{"violations_detected":false}`}},
	{id: "pangea.textGuard", params: `{"recipe":"r","overrides":{"malicious_entity":{"disabled":true}}}`, creds: `{"domain":"aws.us.pangea.cloud","apiKey":"the-key"}`, host: "ai-guard.aws.us.pangea.cloud", path: "/v1/text/guard", header: key, shape: struct {
		Text, Recipe string
		Debug        bool
		Overrides    map[string]any
	}{}, golden: `{"debug":false,"overrides":{"malicious_entity":{"disabled":true}},"recipe":"r","text":"mail ann@example.com 🙂 now"}`,
		passes: []string{`{"status":"Success","result":{"detectors":{"prompt_injection":{"detected":false},"pii_entity":null}}}`},
		fails:  map[string]string{`{"status":"Success","result":{"detectors":{"prompt_injection":{"detected":true,"data":{}}}}}`: "prompt_injection"}, wrong: []string{`{"status":"Unauthorized","result":null}`, `{"status":"Success","result":{}}`}},
	{id: "pangea.pii", texts: []string{"mail ann@example.com", "", "sun"}, creds: `{"domain":"aws.eu.pangea.cloud","apiKey":"the-key"}`, host: "redact.aws.eu.pangea.cloud", path: "/v1/redact_structured", header: key, shape: struct{ Data []string }{},
		golden: `{"data":["mail ann@example.com","","sun"]}`, passes: []string{`{"status":"Success","result":{"count":0,"redacted_data":["mail ann@example.com","","sun"]}}`},
		fails: map[string]string{`{"status":"Success","result":{"count":1,"redacted_data":["mail <EMAIL>","","sun"]}}`: "pii"}, masks: map[string]string{`{"status":"Success","result":{"count":1,"redacted_data":["mail <EMAIL>","","sun"]}}`: "mail <EMAIL>//"},
		wrong: []string{`{"status":"Success","result":{"count":1,"redacted_data":["x"]}}`, `{"status":"Success","result":{}}`}},
	{id: "panw-prisma-airs.intercept", params: `{"profile_name":"prof","app_name":"crm","scan_scope":"all_messages"}`, creds: `{"AIRS_API_KEY":"the-key"}`, host: "service.api.aisecurity.paloaltonetworks.com", path: "/v1/scan/sync/request", header: map[string]string{"X-Pan-Token": "the-key"}, shape: airsBody{},
		golden: `{"ai_profile":{"profile_name":"prof"},"contents":[{"prompt":"be kind\nmail ann@example.com 🙂 now"}],"metadata":{"ai_model":"unknown-model","app_name":"gateway-crm","app_user":"gateway-gateway"},"tr_id":"the-trace"}`,
		passes: []string{`{"action":"allow","category":"benign"}`}, fails: map[string]string{`{"action":"block","category":"malicious"}`: "malicious"}, wrong: []string{`{"action":"other"}`}},
	{id: "panw-prisma-airs.intercept", behind: true, creds: `{"AIRS_API_KEY":"the-key"}`, host: "service.api.aisecurity.paloaltonetworks.com", path: "/v1/scan/sync/request", header: map[string]string{"X-Pan-Token": "the-key"}, shape: airsBody{},
		golden: `{"contents":[{"response":"write to bob@example.com"}],"metadata":{"ai_model":"unknown-model","app_name":"gateway","app_user":"gateway-gateway"},"tr_id":"the-trace"}`, passes: []string{`{"action":"allow"}`}, fails: map[string]string{`{"action":"block"}`: "block"}},
	{id: "pillar.scanPrompt", params: `{"scanners":["prompt_injection","pii"]}`, creds: keyed, host: "api.pillarseclabs.com", path: "/api/v1/scan/prompt", header: key, shape: pillarBodyShape{},
		golden: `{"message":"mail ann@example.com 🙂 now","scanners":{"pii":true,"prompt_injection":true}}`, passes: []string{`{"prompt_injection":false,"pii":null,"secrets":true}`},
		fails: map[string]string{`{"prompt_injection":false,"pii":[{"type":"email"}]}`: "pii"}},
	{id: "pillar.scanResponse", behind: true, params: `{"scanners":["secrets"]}`, creds: keyed, host: "api.pillarseclabs.com", path: "/api/v1/scan/response", header: key, shape: pillarBodyShape{},
		golden: `{"message":"write to bob@example.com","scanners":{"secrets":true}}`, passes: []string{`{"secrets":null}`}, fails: map[string]string{`{"secrets":true}`: "secrets"}},
	{id: "promptfoo.guard", host: "api.promptfoo.dev", path: "/v1/guard", shape: struct{ Input string }{}, golden: `{"input":"mail ann@example.com 🙂 now"}`,
		passes: []string{`{"model":"m","results":[{"categories":{"prompt_injection":true,"jailbreak":false},"category_scores":{},"flagged":true}]}`}, fails: map[string]string{`{"results":[{"categories":{"jailbreak":true}}]}`: "jailbreak"}, wrong: []string{`{"results":[]}`}},
	{id: "promptfoo.pii", host: "api.promptfoo.dev", path: "/v1/pii", shape: struct{ Input string }{}, golden: `{"input":"mail ann@example.com 🙂 now"}`, passes: []string{`{"results":[{"flagged":false}]}`},
		fails: map[string]string{`{"results":[{"flagged":true,"payload":{"pii":[{"entity_type":"email","start":5,"end":20,"pii":"ann@example.com"}]}}]}`: "email", `{"results":[{"flagged":true}]}`: "pii"},
		masks: map[string]string{`{"results":[{"flagged":true,"payload":{"pii":[{"entity_type":"email","start":5,"end":20,"pii":"ann@example.com"},{"entity_type":"name","start":5,"end":8}]}}]}`: "mail [EMAIL] 🙂 now"},
		wrong: []string{`{"results":[{"flagged":true,"payload":{"pii":[{"entity_type":5}]}}]}`}},
	{id: "promptfoo.harm", host: "api.promptfoo.dev", path: "/v1/harm", shape: struct{ Input string }{}, golden: `{"input":"mail ann@example.com 🙂 now"}`, passes: []string{`{"results":[{"flagged":false,"categories":{}}]}`}, fails: map[string]string{`{"results":[{"flagged":true,"categories":{"hate":true,"violent_crimes":false}}]}`: "hate"}},
	{id: "promptsecurity.protectPrompt", params: `{"user":"u","userGroups":["g"]}`, creds: `{"apiDomain":"eu.prompt.security","apiKey":"the-key"}`, host: "eu.prompt.security", path: "/api/protect", header: map[string]string{"App-Id": "the-key"}, shape: protectBody{},
		golden: `{"prompt":"mail ann@example.com 🙂 now","user":"u","user_groups":["g"]}`, passes: []string{`{"status":"success","result":{"prompt":{"passed":true,"action":"log","violations":[]}}}`},
		fails: map[string]string{`{"result":{"prompt":{"passed":false,"violations":["Jailbreak"]}}}`: "Jailbreak"}, masks: map[string]string{`{"result":{"prompt":{"passed":true,"action":"modify","modified_text":"mail ***"}}}`: "mail ***"}, wrong: []string{`{"result":{"response":{"passed":true}}}`}},
	{id: "promptsecurity.protectResponse", behind: true, params: `{"monitorOnly":true}`, creds: `{"apiDomain":"eu.prompt.security","apiKey":"the-key"}`, host: "eu.prompt.security", path: "/api/protect", header: map[string]string{"App-Id": "the-key"}, shape: protectBody{},
		golden: `{"response":"write to bob@example.com"}`, passes: []string{`{"result":{"response":{"passed":true}}}`, `{"result":{"response":{"passed":false}}}`}},
	{id: "zscaler.scan", params: `{"policyId":"760"}`, creds: keyed, host: "api.zseclipse.net", path: "/v1/detection/execute-policy", header: key, shape: struct {
		PolicyID           int64
		Direction, Content string
	}{}, golden: `{"content":"mail ann@example.com 🙂 now","direction":"IN","policyId":760}`, passes: []string{`{"action":"ALLOW","detectorResponses":{}}`, `{"action":"DETECT","detectorResponses":{"pii":{"triggered":true}}}`},
		fails: map[string]string{`{"action":"BLOCK","detectorResponses":{"toxicity":{"triggered":true,"action":"BLOCK"}}}`: "toxicity"}, wrong: []string{`{"action":"OTHER"}`}},
	{id: "zscaler.scan", behind: true, params: `{"policyId":"p"}`, creds: `{"zscalerApiKey":"the-key","baseUrl":"https://api.us1.zseclipse.net"}`, host: "api.us1.zseclipse.net", path: "/v1/detection/execute-policy", header: key, shape: struct{ PolicyID, Direction, Content string }{},
		golden: `{"content":"write to bob@example.com","direction":"OUT","policyId":"p"}`, passes: []string{`{"action":"ALLOW"}`}, fails: map[string]string{`{"action":"BLOCK"}`: "BLOCK"}},
}
