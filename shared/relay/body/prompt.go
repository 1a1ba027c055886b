package body

import (
	"cmp"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/prompt"
)

// readPrompt reads the request on a route of saved prompts. Fill renders the body for the
// provider later: the plan may name another prompt than the path.
func readPrompt(b *Body) (err error) {
	if len(b.In) == 0 {
		b.In = []byte("{}")
	}
	if err = bodyKeys.Walk(b.In, &b.walk); err != nil {
		return err
	}
	b.prompts, err = prompt.ParseRequest(b.In)
	return err
}

// RendersPrompt reports whether a saved prompt renders the body.
func (b *Body) RendersPrompt() bool { return b.prompts != nil }

// FilledBy returns the prompt of a name, with or without a version, rendered with the request's
// variables.
func (b *Body) FilledBy(name string) (*prompt.Filled, error) {
	return prompt.Shelf{View: b.Req.View, Scope: b.Req.Who.Scope, User: b.userBy}.Fill(b.Req.Ctx, name, b.prompts)
}

// userBy returns the user by which experiments are divided: the value of a key of the request's
// metadata, or for "" the user of the request. A request that names none counts as a separate
// user.
func (b *Body) userBy(key string) string {
	if key == "" {
		return cmp.Or(b.Metadata["_user"], b.prompts.Text("user"), b.Req.ULID)
	}
	return cmp.Or(b.Metadata[key], b.Req.ULID)
}

// Fill replaces the client's body by a rendered prompt. It completes the reading of the body:
// from here on the request is one of the route for the template's type, with the demands of the
// rendered body.
func (b *Body) Fill(by *prompt.Filled) error {
	b.Filled = by
	as := b.Req.Route.Prompt()
	if as.Render {
		return nil
	}
	if by.Compiled.Type == prompt.Completion {
		b.Req.ServeAs(as.Completion)
	} else {
		b.Req.ServeAs(as.Chat)
	}
	if n := int64(len(by.Body)); n > egress.Uncounted {
		if err := b.Req.Lease.Take(b.Req.Ctx, n); err != nil {
			return err
		}
	}
	size := b.Size
	if err := b.ReadFrom(by.Body); err != nil {
		return err
	}
	b.Size = size
	if b.Slug == "" {
		b.Slug = slugOf(by)
	}
	return nil
}

// ModelOf returns the model of a rendered prompt, and the saved provider that it names.
func ModelOf(by *prompt.Filled) (slug, model string) {
	model = TextIn(by.Body, "model")
	if rest, ok := strings.CutPrefix(model, "@"); ok {
		if slug, name, ok := strings.Cut(rest, "/"); ok {
			return slug, name
		}
	}
	return slugOf(by), model
}

// slugOf returns the saved provider that a prompt was saved with.
func slugOf(by *prompt.Filled) string { return strings.TrimPrefix(by.Prompt.VirtualKey, "@") }
