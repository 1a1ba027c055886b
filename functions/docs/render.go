package docs

import (
	_ "embed"
	"fmt"
	"html"
	"net/url"
	"strings"
)

// Pages are written by code of our own, because html/template would make the function half
// as large again.

//go:embed page.css
var style string

// hyper writes HTML. Text that is put in with text is escaped.
type hyper struct{ strings.Builder }

// put writes a format whose arguments are texts: each is escaped.
func (w *hyper) put(format string, args ...string) {
	escaped := make([]any, len(args))
	for i, a := range args {
		escaped[i] = html.EscapeString(a)
	}
	fmt.Fprintf(w, format, escaped...)
}

// render writes the page.
func (p *page) render() []byte {
	w := &hyper{}
	title := p.Title
	if p.Family != nil {
		title = p.Family.Name + " · " + title
	}
	w.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n", title)
	w.WriteString("<style>\n" + style + "</style>\n</head>\n<body>\n")
	w.put("<nav aria-label=\"Families\">\n<a href=\"%sdocs\">%s</a>\n", p.Up, p.Title)
	for _, f := range p.Families {
		here := ""
		if f == p.Family {
			here = ` aria-current="page"`
		}
		w.put("<a href=\"%s%s\"", p.Root, url.PathEscape(f.Name))
		w.WriteString(here)
		w.put(">%s</a>\n", f.Name)
	}
	w.put("<a href=\"%sopenapi.json\">openapi.json</a>\n</nav>\n<main>\n", p.Up)
	if p.Family != nil {
		w.family(p.Family)
	} else {
		w.overview(p)
	}
	w.WriteString("</main>\n</body>\n</html>\n")
	return []byte(w.String())
}

const firstRequest = `curl $GATEWAY/v1/chat/completions \
  -H "x-gateway-api-key: $KEY" -H "content-type: application/json" \
  -d '{"model":"@openai/gpt-5.4","messages":[{"role":"user","content":"Hello"}]}'`

func (w *hyper) overview(p *page) {
	w.put("<h1>%s %s</h1>\n", p.Title, p.Version)
	w.WriteString("<p>Every request brings a key, as <code>x-gateway-api-key</code> or as <code>Authorization: Bearer</code>. Models are called with a workspace key, resources are managed with an organisation key, or with a workspace key inside its workspace. Paths stand under <code>/v1</code>.</p>\n")
	w.put("<pre>%s</pre>\n", firstRequest)
	w.WriteString("<p>Programs read <a href=\"openapi.json\">openapi.json</a>, from which these pages are made.</p>\n")
	for _, f := range p.Families {
		at := p.Root + url.PathEscape(f.Name)
		w.put("<section>\n<h2><a href=\"%s\">%s</a></h2>\n<p>%s</p>\n<table>\n", at, f.Name, f.Doc)
		for _, o := range f.Operations {
			w.put("<tr><td class=\"path\"><a href=\"%s#%s\">%s %s</a></td><td>%s</td></tr>\n", at, o.ID, o.Method, o.Path, o.Doc)
		}
		w.WriteString("</table>\n</section>\n")
	}
}

func (w *hyper) family(f *familyPage) {
	w.put("<h1>%s</h1>\n<p>%s</p>\n<ul>\n", f.Name, f.Doc)
	for _, o := range f.Operations {
		w.put("<li><a class=\"path\" href=\"#%s\">%s %s</a> %s</li>\n", o.ID, o.Method, o.Path, o.Doc)
	}
	w.WriteString("</ul>\n")
	for i := range f.Operations {
		w.operation(&f.Operations[i])
	}
}

func (w *hyper) operation(o *operationPage) {
	w.put("<section id=\"%s\">\n<h3 class=\"path\"><span class=\"method\">%s</span>%s</h3>\n<p>%s</p>\n<p>", o.ID, o.Method, o.Path, o.Doc)
	if o.Public {
		w.WriteString("Needs no key.")
	} else {
		w.WriteString("Scope: ")
		for i, s := range o.Scopes {
			if i > 0 {
				w.WriteString(" or ")
			}
			w.put("<code>%s</code>", s)
		}
	}
	w.WriteString("</p>\n")
	w.table("Parameters", o.Parameters, true)
	w.table("Body", o.Body, false)
	if o.Example != "" {
		w.put("<p>Example</p><pre>%s</pre>\n", o.Example)
	}
	w.put("<p>Answers: %s", strings.Join(o.Statuses, ", "))
	if o.Media != "" {
		w.put(" · %s", o.Media)
	}
	w.WriteString("</p>\n")
	if o.Answer != "" {
		w.put("<pre>%s</pre>\n", o.Answer)
	}
	w.WriteString("</section>\n")
}

// table lists parameters or members; where says where each parameter stands.
func (w *hyper) table(caption string, rows []row, where bool) {
	if len(rows) == 0 {
		return
	}
	w.put("<table><caption>%s</caption><tr><th>Name</th>", caption)
	if where {
		w.WriteString("<th>In</th>")
	}
	w.WriteString("<th>Type</th><th></th></tr>\n")
	for _, r := range rows {
		w.put("<tr><td><code>%s</code>", r.Name)
		if r.Required {
			w.WriteString(" (required)")
		}
		w.WriteString("</td>")
		if where {
			w.put("<td>%s</td>", r.In)
		}
		w.put("<td>%s</td><td>%s</td></tr>\n", r.Type, r.Doc)
	}
	w.WriteString("</table>\n")
}
