package vendors

const (
	patronusURL  = "https://api.patronus.ai/v1/evaluate"
	patronusBody = `{"evaluators":"$evaluators","evaluated_model_input":"$asked","evaluated_model_output":"$text"}`
	qualifireURL = "https://proxy.qualifire.ai/api/evaluation/evaluate"
	apiKeyHeader = "x-api-key: {apiKey}"
	qualifireKey = "X-Qualifire-API-Key: {apiKey}"
)

// judgeWires are vendors that judge properties of a text.
var judgeWires = append(append(
	asPatronus("judge:patronus:is-concise", "isConcise", "judge:patronus:is-helpful", "isHelpful", "judge:patronus:is-polite", "isPolite", "judge:patronus:no-apologies", "noApologies",
		"judge:patronus:no-gender-bias", "noGenderBias", "judge:patronus:no-racial-bias", "noRacialBias", "answer-relevance", "retrievalAnswerRelevance", "hallucination", "retrievalHallucination",
		"toxicity", "toxicity", "", "custom", "pii", "pii", "phi", "phi"),
	asQualifire(
		"contentModeration", `{"input":"$asked","output":"$answered","content_moderation_check":true}`,
		"pii", `{"input":"$asked","output":"$answered","pii_check":true}`,
		"promptInjections", `{"input":"$text","prompt_injections":true}`,
		"hallucinations", `{"input":"$asked","output":"$text","hallucinations_check":true,"hallucinations_mode":"$.mode"}`,
		"grounding", `{"input":"$asked","output":"$text","grounding_check":true,"grounding_mode":"$.mode"}`,
		"toolUseQuality", `{"messages":"$turns","available_tools":"$tools","tool_selection_quality_check":true,"tsq_mode":"$.mode"}`,
		"policy", `{"assertions":"$.policies","assertions_mode":"$.mode","input":"$policyInput","output":"$policyOutput"}`)...),
	row{id: "sydelabs.sydeguard", name: "SydeLabs", url: "https://guard.sydelabs.ai/api/v1/guard/generate-score", header: apiKeyHeader, body: `{"prompt":"$text"}`, judge: sydelabs},
	row{id: "walledai.walledprotect", name: "Walled AI", url: "https://services.walled.ai/v1/walled-protect", header: apiKeyHeader,
		body:  `{"text":"$text","generic_safety_check":"$.generic_safety_check","greetings_list":"$.greetings_list|[\"Casual & Friendly\"]","pii_list":"$.pii_list|[\"Person's Name\",\"Address\",\"Email Id\",\"Contact No\",\"Date Of Birth\",\"Unique Id\",\"Financial Data\"]","compliance_list":"$.compliance_list|[]"}`,
		judge: walled})

// asPatronus returns rows for pairs of an evaluator with criterion and a check.
func asPatronus(pairs ...string) (out []row) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, row{id: "patronus." + pairs[i+1], name: "Patronus", arg: pairs[i], url: patronusURL, header: apiKeyHeader, body: patronusBody, each: pairs[i] == "pii" || pairs[i] == "phi",
			values: values{"evaluators": evaluators}, judge: patronus})
	}
	return out
}

// asQualifire returns rows for pairs of a check and its body.
func asQualifire(pairs ...string) (out []row) {
	v := values{"turns": toolTurns, "tools": toolsOf, "policyInput": policyInput, "policyOutput": policyOutput}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, row{id: "qualifire." + pairs[i], name: "Qualifire", url: qualifireURL, header: qualifireKey, body: pairs[i+1], empty: pairs[i] == "toolUseQuality", values: v, judge: qualifire})
	}
	return out
}
