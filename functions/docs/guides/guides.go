// Package guides contains the user guides as Markdown files and renders them as HTML for the
// documentation pages. A guide is one file with one H1. Links to other guides are file names,
// so that they work in the repository, too.
package guides

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

//go:embed *.md
var files embed.FS

// order lists the guides as readers need them.
var order = []string{
	"quickstart", "concepts", "requests", "routing", "recipes", "guardrails", "prompts", "budgets", "observe", "console", "cli", "manage", "saml",
	"mcp", "tools", "agents", "single", "deploy", "operate", "runbook", "simulation", "athena", "migrate", "import", "declarative", "conformance", "peers", "reference",
}

// Guide is a rendered guide.
type Guide struct {
	Name     string // file name without extension
	Title    string // its H1
	Sections []Section
	HTML     []byte // without the H1
}

// Section is an H2 or H3 of a guide, with the text up to the next one. The section before the
// first heading has no ID and no title.
type Section struct {
	ID, Title string
	Level     int
	Text      string
}

// All returns the guides in reading order. The result must not be changed.
var All = sync.OnceValues(func() ([]Guide, error) {
	out := make([]Guide, 0, len(order))
	for _, name := range order {
		source, err := files.ReadFile(name + ".md")
		if err != nil {
			return nil, fmt.Errorf("guides: %w", err)
		}
		g, err := render(name, source)
		if err != nil {
			return nil, fmt.Errorf("guides: %s: %w", name, err)
		}
		out = append(out, g)
	}
	return out, nil
})

// markdown renders tables, fenced code and headings with ids, and drops raw HTML.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{}, 0))),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(headings{}, 0))),
)

// headings renders headings, those below the H1 with a link to themselves.
type headings struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (headings) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		h := n.(*ast.Heading)
		id, _ := h.AttributeString("id")
		if entering {
			fmt.Fprintf(w, "<h%d id=\"%s\">", h.Level, html.EscapeString(string(id.([]byte))))
			return ast.WalkContinue, nil
		}
		fmt.Fprintf(w, " <a class=\"anchor\" href=\"#%s\" aria-label=\"Link to %s\">#</a></h%d>\n", html.EscapeString(string(id.([]byte))), html.EscapeString(plain(h, source)), h.Level)
		return ast.WalkContinue, nil
	})
}

func render(name string, source []byte) (Guide, error) {
	g := Guide{Name: name, Sections: []Section{{}}}
	doc := markdown.Parser().Parse(text.NewReader(source))
	for node := doc.FirstChild(); node != nil; {
		next := node.NextSibling()
		h, ok := node.(*ast.Heading)
		switch {
		case ok && h.Level == 1 && g.Title != "":
			return g, fmt.Errorf("a second H1: %s", plain(h, source))
		case ok && h.Level == 1:
			g.Title = plain(h, source)
			doc.RemoveChild(doc, h)
		case ok && h.Level <= 3:
			id, _ := h.AttributeString("id")
			g.Sections = append(g.Sections, Section{ID: string(id.([]byte)), Title: plain(h, source), Level: h.Level})
		default:
			last := &g.Sections[len(g.Sections)-1]
			last.Text = strings.TrimSpace(last.Text + " " + plain(node, source))
		}
		node = next
	}
	if g.Title == "" {
		return g, fmt.Errorf("no H1")
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, doc); err != nil {
		return g, err
	}
	g.HTML = readable.ReplaceAll(b.Bytes())
	return g, nil
}

// replacements are pairs of HTML that goldmark writes and what a page has in its place.
type replacements [][2]string

func (r replacements) ReplaceAll(html []byte) []byte {
	for _, pair := range r {
		html = bytes.ReplaceAll(html, []byte(pair[0]), []byte(pair[1]))
	}
	return html
}

// readable makes wide blocks scroll inside the page, also by keyboard. Text cannot contain
// these tags, because goldmark escapes it and drops raw HTML.
var readable = replacements{
	{"<pre>", `<pre tabindex="0">`},
	{"<table>", `<div class="scroll" tabindex="0"><table>`},
	{"</table>", "</table></div>"},
}

// plain returns the text of a node, with a space between blocks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeBlock && b.Len() > 0 {
			b.WriteByte(' ')
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// links turns links to files of guides into links to their pages, and links to other files of
// the repository, which are not served, into text.
type links struct{}

// Transform implements parser.ASTTransformer.
func (links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var unserved []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to := string(link.Destination)
		switch file, fragment, anchored := strings.Cut(to, "#"); {
		case strings.HasPrefix(to, "https://"), file == "":
		case !strings.Contains(file, "/") && strings.HasSuffix(file, ".md"):
			to = strings.TrimSuffix(file, ".md")
			if anchored {
				to += "#" + fragment
			}
			link.Destination = []byte(to)
		default:
			unserved = append(unserved, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range unserved {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; {
			next := child.NextSibling()
			parent.InsertBefore(parent, link, child)
			child = next
		}
		parent.RemoveChild(parent, link)
	}
}
