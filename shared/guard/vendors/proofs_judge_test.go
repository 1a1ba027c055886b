package vendors

type patronusShape struct {
	Evaluators                                    []struct{ Evaluator, Explain_strategy, Criteria string }
	Evaluated_model_input, Evaluated_model_output string
}

type qualifireShape struct {
	Input, Output                                          string
	Content_moderation_check, PII_check, Prompt_injections bool
	Hallucinations_check, Grounding_check                  bool
	Hallucinations_mode, Grounding_mode, Assertions_mode   string
	Assertions                                             []string
	Messages                                               []toolShape
	Available_tools                                        []struct {
		Name, Description string
		Parameters        map[string]any
	}
	Tool_selection_quality_check bool
	TSQ_mode                     string
}

type toolShape struct {
	Role, Content, Tool_call_id string
	Tool_calls                  []struct {
		ID, Name  string
		Arguments map[string]any
	}
}

var apiKey = map[string]string{"X-Api-Key": "the-key"}

const (
	good = `{"results":[{"evaluator_id":"judge","status":"success","error_message":null,"evaluation_result":{"pass":true,"score_raw":1}}]}`
	poor = `{"results":[{"evaluation_result":{"pass":false,"explanation":"bob@example.com"}}]}`
)

// patronusProofs returns those of evaluators of the entire response.
func patronusProofs() (out []proof) {
	for check, evaluator := range map[string]string{
		"isConcise": `"criteria":"patronus:is-concise","evaluator":"judge"`, "isHelpful": `"criteria":"patronus:is-helpful","evaluator":"judge"`, "isPolite": `"criteria":"patronus:is-polite","evaluator":"judge"`,
		"noApologies": `"criteria":"patronus:no-apologies","evaluator":"judge"`, "noGenderBias": `"criteria":"patronus:no-gender-bias","evaluator":"judge"`, "noRacialBias": `"criteria":"patronus:no-racial-bias","evaluator":"judge"`,
		"retrievalAnswerRelevance": `"evaluator":"answer-relevance"`, "retrievalHallucination": `"evaluator":"hallucination"`, "toxicity": `"evaluator":"toxicity"`, "custom": `"criteria":"mine","evaluator":"judge"`,
		"pii": `"evaluator":"pii"`, "phi": `"evaluator":"phi"`,
	} {
		p := proof{id: "patronus." + check, behind: true, creds: keyed, host: "api.patronus.ai", path: "/v1/evaluate", header: apiKey, shape: patronusShape{},
			golden: `{"evaluated_model_input":"mail ann@example.com 🙂 now","evaluated_model_output":"write to bob@example.com","evaluators":[{` + evaluator + `,"explain_strategy":"always"}]}`,
			passes: []string{good}, fails: map[string]string{poor: check},
			wrong: []string{`{"results":[]}`, `{"results":[{"error_message":"ann@example.com"}]}`, `{"results":[{"evaluation_result":{"pass":"no"}}]}`}}
		if check == "custom" {
			p.params = `{"profile":"mine"}`
		}
		if check == "pii" || check == "phi" {
			p.masks = map[string]string{`{"results":[{"evaluation_result":{"pass":false,"additional_info":{"positions":[[9,24],[10,12]]}}}]}`: "write to b*************m"}
			p.wrong = append(p.wrong, `{"results":[{"evaluation_result":{"pass":false,"additional_info":{"positions":[[9]]}}}]}`)
		}
		out = append(out, p)
	}
	return out
}

const toolRequest = `{"messages":[{"role":"user","content":"the weather"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"w","arguments":"{\"c\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"sun"}],
	"tools":[{"type":"function","function":{"name":"w","description":"d","parameters":{"type":"object"}}},{"type":"web_search"}]}`

func qualifireProof(check, body, id string, behind bool) proof {
	return proof{id: "qualifire." + check, behind: behind, creds: keyed, host: "proxy.qualifire.ai", path: "/api/evaluation/evaluate", header: map[string]string{"X-Qualifire-Api-Key": "the-key"}, shape: qualifireShape{},
		params: id, golden: body, passes: []string{`{"status":"success","score":100,"evaluationResults":[]}`}, fails: map[string]string{`{"status":"failed","evaluationResults":[{"type":"` + check + `","results":[{"name":"ann@example.com"}]}]}`: check}, wrong: []string{`{"status":5}`}}
}

var judgeProofs = append(patronusProofs(),
	qualifireProof("contentModeration", `{"content_moderation_check":true,"input":"mail ann@example.com 🙂 now"}`, ``, false),
	qualifireProof("contentModeration", `{"content_moderation_check":true,"input":"mail ann@example.com 🙂 now","output":"write to bob@example.com"}`, ``, true),
	qualifireProof("pii", `{"input":"mail ann@example.com 🙂 now","pii_check":true}`, ``, false),
	qualifireProof("promptInjections", `{"input":"mail ann@example.com 🙂 now","prompt_injections":true}`, ``, false),
	qualifireProof("hallucinations", `{"hallucinations_check":true,"hallucinations_mode":"balanced","input":"mail ann@example.com 🙂 now","output":"write to bob@example.com"}`, ``, true),
	qualifireProof("grounding", `{"grounding_check":true,"grounding_mode":"speed","input":"mail ann@example.com 🙂 now","output":"write to bob@example.com"}`, `{"mode":"speed"}`, true),
	qualifireProof("policy", `{"assertions":["be kind"],"assertions_mode":"balanced","input":"mail ann@example.com 🙂 now"}`, `{"policies":["be kind"]}`, false),
	qualifireProof("policy", `{"assertions":["be kind"],"assertions_mode":"quality","output":"write to bob@example.com"}`, `{"policies":["be kind"],"policy_target":"output","mode":"quality"}`, true),
	tools(qualifireProof("toolUseQuality", `{"available_tools":[{"name":"w","description":"d","parameters":{"type":"object"}}],"messages":[{"role":"user","content":"the weather"},{"role":"assistant","tool_calls":[{"id":"1","name":"w","arguments":{"c":1}}]},{"role":"tool","content":"sun","tool_call_id":"1"},{"role":"assistant","tool_calls":[{"name":"w","arguments":{}}]}],"tool_selection_quality_check":true,"tsq_mode":"balanced"}`, ``, true)),
	proof{id: "sydelabs.sydeguard", params: `{"toxicity_threshold":0.9}`, creds: keyed, host: "guard.sydelabs.ai", path: "/api/v1/guard/generate-score", header: apiKey, shape: struct{ Prompt string }{}, golden: `{"prompt":"mail ann@example.com 🙂 now"}`,
		passes: []string{`{"overall_score":0.2,"category_scores":{"PROMPT_INJECT":0.5,"TOXIC":0.9,"EVASION":0.1}}`}, fails: map[string]string{`{"category_scores":{"PROMPT_INJECT":0.6}}`: "PROMPT_INJECT", `{"category_scores":{"EVASION":1}}`: "EVASION"}, wrong: []string{`{"category_scores":{"TOXIC":"1"}}`}},
	proof{id: "walledai.walledprotect", creds: keyed, host: "services.walled.ai", path: "/v1/walled-protect", header: apiKey, shape: struct {
		Text                                      string
		Generic_safety_check                      bool
		Greetings_list, PII_list, Compliance_list []string
	}{}, golden: `{"compliance_list":[],"generic_safety_check":true,"greetings_list":["Casual \u0026 Friendly"],"pii_list":["Person's Name","Address","Email Id","Contact No","Date Of Birth","Unique Id","Financial Data"],"text":"mail ann@example.com 🙂 now"}`,
		passes: []string{`{"success":true,"data":{"safety":[{"safety":"generic","isSafe":true}],"pii":[],"greetings":[]}}`}, fails: map[string]string{`{"data":{"safety":[{"isSafe":false}]}}`: "unsafe"}, wrong: []string{`{"data":{"safety":[]}}`, `{"data":{"safety":[{"isSafe":1}]}}`}},
	proof{id: "exa.online", params: `{"numResults":2,"includeDomains":["example.com"]}`, creds: keyed, host: "api.exa.ai", path: "/search", header: apiKey, shape: struct {
		Query                          string
		NumResults                     int
		UseAutoprompt                  bool
		Contents                       struct{ Text bool }
		IncludeDomains, ExcludeDomains []string
	}{}, golden: `{"contents":{"text":true},"includeDomains":["example.com"],"numResults":2,"query":"mail ann@example.com 🙂 now","useAutoprompt":true}`, passes: []string{`{"results":[]}`},
		bodies: map[string]string{`{"results":[{"title":"T","url":"https://t.example","text":"body","publishedDate":"2026"}]}`: `{"model":"m","messages":[{"role":"system","content":"be kind\n<web_search_context>\n[1] \"T\"\nURL: https://t.example\nDate: 2026\nbody\n\n</web_search_context>"},{"role":"user","content":"mail ann@example.com 🙂 now"}]}`},
		wrong:  []string{`{"results":[{"title":"no address"}]}`, `{"results":{}}`}},
	proof{id: "tavily.online", kind: "complete", request: `{"prompt":"` + sampleText + `"}`, params: `{"prefix":"<","suffix":">\n","topic":"news","includeAnswer":true}`, creds: keyed, host: "api.tavily.com", path: "/search", header: key, shape: struct {
		Query, Search_depth, Topic                                                                                    string
		Max_results, Chunks_per_source                                                                                int
		Include_answer, Include_images, Auto_parameters, Exact_match, Include_usage, Safe_search, Include_raw_content bool
	}{}, golden: `{"auto_parameters":false,"chunks_per_source":3,"exact_match":false,"include_answer":true,"include_images":false,"include_usage":false,"max_results":5,"query":"mail ann@example.com 🙂 now","safe_search":false,"search_depth":"basic","topic":"news"}`,
		passes: []string{`{"results":[]}`}, bodies: map[string]string{`{"answer":"yes","results":[{"title":"T","url":"https://t.example","content":"body","score":1}]}`: `{"prompt":"<\nyes\n[1] \"T\"\nURL: https://t.example\nbody\n>\nmail ann@example.com 🙂 now"}`}},
)

func tools(p proof) proof {
	p.request, p.response = toolRequest, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"w","arguments":"{"}}]}}]}`
	p.texts = []string{}
	return p
}
