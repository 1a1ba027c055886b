package guard

// restore restores redacted values in the response.
var restore = flag("restore", false)

// localChecks are further built-in checks.
var localChecks = []*Check{
	{ID: "gateway.secrets", Phase: Both, Category: Model, Mutates: true, Params: []Param{redact, restore, flag("entropy", true), not}, Doc: "The text contains no secrets."},
	{ID: "gateway.promptInjection", Phase: Both, Category: Model, Params: []Param{share("threshold"), not}, Doc: "The text is not an attack on the model."},
	{ID: "gateway.profanity", Phase: Both, Category: Model, Mutates: true, Params: []Param{redact, restore, not}, Doc: "The text is polite."},
	{ID: "gateway.invisibleUnicode", Phase: Both, Category: Model, Mutates: true, Params: []Param{redact, not}, Doc: "The text has no invisible characters."},
	{ID: "gateway.systemPromptLeak", Phase: After, Category: Model, Doc: "The response does not reveal the system prompt.", Params: []Param{
		{Name: "threshold", Type: Number, Max: 1, Default: 0.3}, {Name: "minWords", Type: Integer, Min: 4, Max: 1000, Default: 12}, not}},
}
