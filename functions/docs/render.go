package docs

import (
	_ "embed"
	"fmt"
	"html"
	"net/url"
	"strings"

	"gateway/functions/docs/guides"
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
	switch {
	case p.Family != nil:
		title = p.Family.Name + " · " + title
	case p.Guide != nil:
		title = p.Guide.Title + " · " + title
	}
	w.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n", title)
	w.WriteString("<style>\n" + style + "</style>\n</head>\n<body>\n")
	w.navigation(p)
	w.WriteString("<main>\n")
	switch {
	case p.Family != nil:
		w.family(p.Family)
	case p.Guide != nil:
		w.guide(p.Guide)
	default:
		w.overview(p)
	}
	w.WriteString("</main>\n</body>\n</html>\n")
	return []byte(w.String())
}

// navigation lists all pages.
func (w *hyper) navigation(p *page) {
	w.put("<nav aria-label=\"Pages\">\n<a href=\"%sdocs\"", p.Base)
	w.current(p.Guide == nil && p.Family == nil)
	w.put(">%s</a>\n<p>Guides</p>\n", p.Title)
	for i := range p.Guides {
		g := &p.Guides[i]
		w.put("<a href=\"%sdocs/"+guidePath+"%s\"", p.Base, url.PathEscape(g.Name))
		w.current(g == p.Guide)
		w.put(">%s</a>\n", g.Title)
	}
	w.WriteString("<p>API reference</p>\n")
	for _, f := range p.Families {
		w.put("<a href=\"%sdocs/%s\"", p.Base, url.PathEscape(f.Name))
		w.current(f == p.Family)
		w.put(">%s</a>\n", f.Name)
	}
	w.put("<a href=\"%sopenapi.json\">openapi.json</a>\n</nav>\n", p.Base)
}

// current marks the link to the page itself.
func (w *hyper) current(is bool) {
	if is {
		w.WriteString(` aria-current="page"`)
	}
}

// guide writes a guide with the list of its sections.
func (w *hyper) guide(g *guides.Guide) {
	w.put("<h1>%s</h1>\n", g.Title)
	if len(g.Sections) > 1 {
		w.WriteString("<ul>\n")
		for _, s := range g.Sections {
			w.put("<li><a href=\"#%s\">%s</a></li>\n", s.ID, s.Title)
		}
		w.WriteString("</ul>\n")
	}
	w.Write(g.HTML)
}

const firstRequest = `curl $GATEWAY/v1/chat/completions \
  -H "x-gateway-api-key: $KEY" -H "content-type: application/json" \
  -d '{"model":"@openai/gpt-5.4","messages":[{"role":"user","content":"Hello"}]}'`

func (w *hyper) overview(p *page) {
	w.put("<h1>%s %s</h1>\n", p.Title, p.Version)
	w.WriteString("<p>Every request carries a key, as <code>x-gateway-api-key</code> or as <code>Authorization: Bearer</code>. Models are called with a workspace key. Resources are managed with an organization key, or with a workspace key inside its workspace. All paths are below <code>/v1</code>.</p>\n")
	w.put("<pre>%s</pre>\n<h2>Guides</h2>\n<ul>\n", firstRequest)
	for i := range p.Guides {
		w.put("<li><a href=\"%sdocs/"+guidePath+"%s\">%s</a></li>\n", p.Base, url.PathEscape(p.Guides[i].Name), p.Guides[i].Title)
	}
	w.put("</ul>\n<h2>API reference</h2>\n<p>For programs: <a href=\"%sopenapi.json\">openapi.json</a>, from which these pages are made.</p>\n", p.Base)
	for _, f := range p.Families {
		at := p.Base + "docs/" + url.PathEscape(f.Name)
		w.put("<section>\n<h3><a href=\"%s\">%s</a></h3>\n<p>%s</p>\n<table>\n", at, f.Name, f.Doc)
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
