package body

import (
	"cmp"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/prompt"
)

// readPrompt reads what a route of saved prompts is asked. The body for the provider
// is made later, by Fill: the plan may name another prompt than the path.
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

// AsksPrompt tells whether a saved prompt makes the body.
func (b *Body) AsksPrompt() bool { return b.prompts != nil }

// FilledBy is the prompt of a name, with a version or without, with the request's
// variables.
func (b *Body) FilledBy(name string) (*prompt.Filled, error) {
	return prompt.Shelf{View: b.Req.View, Scope: b.Req.Who.Scope, User: b.userBy}.Fill(b.Req.Ctx, name, b.prompts)
}

// userBy is the user by which experiments divide: the value of a key of the request's
// metadata, or for "" the user of the request. A request that names none counts as a user
// of its own.
func (b *Body) userBy(key string) string {
	if key == "" {
		return cmp.Or(b.Metadata["_user"], b.prompts.Text("user"), b.Req.ULID)
	}
	return cmp.Or(b.Metadata[key], b.Req.ULID)
}

// Fill puts the body that a prompt made in the place of the client's. It ends the
// reading of the body: from here on the request is one of the route for the type of the
// template, and asks for what the body asks.
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

// ModelOf is the model of a filled prompt, and the saved provider that it names.
func ModelOf(by *prompt.Filled) (slug, model string) {
	model = TextIn(by.Body, "model")
	if rest, ok := strings.CutPrefix(model, "@"); ok {
		if slug, name, ok := strings.Cut(rest, "/"); ok {
			return slug, name
		}
	}
	return slugOf(by), model
}

// slugOf is the saved provider that a prompt was saved with.
func slugOf(by *prompt.Filled) string { return strings.TrimPrefix(by.Prompt.VirtualKey, "@") }
