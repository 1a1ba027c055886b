package chat

import (
	"strings"

	"gateway/shared/fault"
)

// Named is a Dialect with paths that differ from those that encoders report, which are those of
// chat completions: messages[2].content[0], reasoning_effort, response_format.
type Named interface {
	// ClientPath returns the client's path for an encoder's path.
	ClientPath(path string) string
}

// Portable is a Dialect with features that only a provider of the same dialect supports.
type Portable interface {
	// Portable rejects a request that no other dialect can serve, with a 400 that names the
	// field.
	Portable(r *Request) error
}

// Referring is a Dialect with requests that can refer to the items of an earlier response.
type Referring interface {
	// Output returns the items of an encoded response and the id under which they are stored,
	// or "" if it has none.
	Output(response []byte) (id string, items []byte)
	// Inline returns a body with the items that its references name in place of them; nil if
	// nothing is replaced. find returns the items that were stored under an id, or nil. Other
	// references stay: they are the provider's own, and Portable rejects them. native: the
	// provider speaks the dialect, and gets no signed reasoning of others.
	Inline(body []byte, native bool, find func(id string) ([]byte, error)) ([]byte, error)
}

// Translate appends the provider's body for r, which client has decoded. It rejects what t does
// not support, see Refuse. Losses and errors use the names of the client's format.
func Translate(dst []byte, client Dialect, provider RequestWriter, r *Request, t *Traits, loss *Loss) ([]byte, error) {
	if p, ok := client.(Portable); ok {
		if err := p.Portable(r); err != nil {
			return dst, err
		}
	}
	if err := r.RefuseThread(client.Name() != provider.Name() || t.NoThreads); err != nil {
		return dst, err
	}
	if t.NoThinking && r.thinksByHabit() && client.Name() != provider.Name() {
		asked := r.Reasoning
		r.Reasoning = Reasoning{Effort: asked.Effort}
		defer func() { r.Reasoning = asked }() // another target may support thinking
		loss.Add("thinking", "this model does not think")
	}
	if err := Refuse(client, r, t, loss); err != nil {
		return dst, err
	}
	r.HiddenAnswer, r.UnboundJSON = false, false // they may be set from another provider's body
	sent := r
	if client.Name() != provider.Name() {
		sent = r.withTexts(loss)
	}
	out, err := provider.EncodeRequest(dst, sent, t, loss)
	r.Renamed, r.HiddenAnswer, r.UnboundJSON = sent.Renamed, sent.HiddenAnswer, sent.UnboundJSON
	if r.Breakpoints {
		err = loss.renameMarkers(err)
	}
	n, ok := client.(Named)
	if !ok {
		return out, err
	}
	for i := range loss.Entries {
		loss.Entries[i].Path = n.ClientPath(loss.Entries[i].Path)
	}
	return out, renamed(err, n, loss)
}

// renameMarkers names cache markers as clients of OpenAI's format do.
func (l *Loss) renameMarkers(err error) error {
	for i := range l.Entries {
		if path, tail, found := strings.Cut(l.Entries[i].Path, "].cache_control"); found {
			l.Entries[i].Path = path + "].prompt_cache_breakpoint" + tail
		}
	}
	if err != nil && fault.From(err).Code == fault.TranslationLoss {
		return l.Err()
	}
	return err
}

// thinksByHabit reports whether thinking was requested in the Messages format. Its clients
// request it of every model and can do without; in other formats a budget is deliberate.
func (r *Request) thinksByHabit() bool {
	return r.Dialect == "anthropic.messages" && r.Reasoning.Thinking == ThinkingBudget
}

// renamed returns err with the names of the client's format.
func renamed(err error, n Named, loss *Loss) error {
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f.Code == fault.TranslationLoss {
		if again := loss.Err(); again != nil {
			return again
		}
	}
	own := n.ClientPath(f.Field)
	if own == f.Field {
		return err
	}
	g := *f
	g.Field, g.Message = own, strings.ReplaceAll(f.Message, f.Field, own)
	return &g
}

// signedMark is the prefix of a signature that names the dialect that created it.
const signedMark = "gw1:"

// MarkSigned marks a signature, or the data of hidden reasoning, with the dialect that created
// it, for clients and stores that keep one string.
func MarkSigned(origin, value string) string { return signedMark + origin + ":" + value }

// UnmarkSigned removes the mark. ok is false if value has none.
func UnmarkSigned(marked string) (origin, value string, ok bool) {
	rest, ok := strings.CutPrefix(marked, signedMark)
	if !ok {
		return "", marked, false
	}
	origin, value, ok = strings.Cut(rest, ":")
	if !ok {
		return "", marked, false
	}
	return origin, value, true
}
