package vendors

import (
	"slices"
	"strconv"
)

// flags fails if a field is true.
func flags(path, name string) func(*ask, answer) {
	return func(a *ask, said answer) {
		if said.flag(path) {
			a.run.found(name)
		}
	}
}

// acts fails if the action is not the one that passes.
func acts(path, passes string, fails ...string) func(*ask, answer) {
	return func(a *ask, said answer) {
		if word := said.word(path, append(fails, passes)...); word != passes {
			a.run.found(label(word))
		}
	}
}

func contentSafety(a *ask, said answer) {
	for _, c := range said.list("categoriesAnalysis") {
		name, severity := label(c.text("category")), c.number("severity")
		a.run.score(name, severity)
		if severity >= a.run.number("severity", 2) {
			a.run.found(name)
		}
	}
	for _, m := range said.listIf("blocklistsMatch") {
		a.run.found(label("blocklist/" + m.text("blocklistName")))
	}
}

// documents returns the parts of the text, named by their numbers.
func documents(a *ask) any {
	language, _ := a.run.params["language"].(string)
	if language == "" {
		language = "en"
	}
	out := []any{}
	for i, t := range a.run.s.Texts {
		if t != "" {
			out = append(out, map[string]any{"id": strconv.Itoa(i), "language": language, "text": t})
		}
	}
	return out
}

// azurePII reads the entities of each document. A document that was not judged makes the
// response an error.
func azurePII(a *ask, said answer) {
	left := len(documents(a).([]any))
	for _, d := range said.list("results.documents") {
		part, err := strconv.Atoi(d.text("id"))
		if err != nil || part < 0 || part >= len(a.run.s.Texts) {
			*said.bad = true
			return
		}
		left--
		redacted := d.text("redactedText")
		for _, e := range d.list("entities") {
			a.run.redact(part, redacted, label(e.text("category")))
		}
	}
	*said.bad = *said.bad || left > 0
}

// systemOrText returns the system prompt if there is one, otherwise the text.
func systemOrText(a *ask) any {
	system := ""
	for _, m := range a.conversation() {
		if m.Role == "system" || m.Role == "developer" {
			if system != "" {
				system += "\n"
			}
			system += m.Content
		}
	}
	if system == "" {
		return a.text
	}
	return system
}

func shieldPrompt(a *ask, said answer) {
	if said.flag("userPromptAnalysis.attackDetected") {
		a.run.found("prompt_attack")
	}
	for _, d := range said.listIf("documentsAnalysis") {
		if d.flag("attackDetected") {
			a.run.found("document_attack")
		}
	}
}

// f5 reads the outcome for one part. Masking does not help against a block.
func f5(a *ask, said answer) {
	outcome := said.word("result.outcome", "cleared", "flagged", "redacted", "blocked")
	redacted := optional[string](said, "redactedInput")
	switch {
	case outcome == "cleared":
	case outcome == "blocked" || redacted == "":
		a.run.found(outcome)
	default:
		a.run.redact(a.part, redacted, outcome)
	}
}

// mistralPath returns a separate path for conversations.
func mistralPath(a *ask) any {
	if a.talks() {
		return "chat/moderations"
	}
	return "moderations"
}

// talks reports whether the request is a conversation.
func (a *ask) talks() bool { return a.run.s.Kind == "chatComplete" || a.run.s.Kind == "messages" }

func mistralInput(a *ask) any {
	if a.talks() {
		return []any{a.withAnswer()}
	}
	return []string{a.text}
}

func mistral(a *ask, said answer) {
	want := a.run.listed("categories")
	results := said.list("results")
	*said.bad = *said.bad || len(results) == 0
	for _, one := range results {
		names, values := one.members("categories", true)
		for i, name := range names {
			if values[i].flag("") && slices.Contains(want, name) {
				a.run.found(name)
			}
		}
		names, values = one.members("category_scores", false)
		for i, name := range names {
			if slices.Contains(want, name) {
				a.run.score(name, values[i].number(""))
			}
		}
	}
}
