// Package prompt is saved prompts: their stored forms with their bounds, the template
// language, and how versions are named. It compiles a version once, so that rendering does
// not read the template again. The loader cache of package resource keeps the result:
//
//	resource.LoadVersion(ctx, view, scope, prompt.KindPrompt, id, n, prompt.DecodePrompt)
//
// The language is Mustache, as in mustache.js, without escaping for HTML and without other
// delimiters, and with two kinds of partials: {{>slug}} is a saved one, optionally of a
// version ({{>slug@5}}, {{>slug@latest}}); {{>>name}} is one that the caller brings as a
// variable. Rendering is bounded in output and depth.
//
// What must never come in: HTTP, calls of models, and looking up of records. Callers do
// that and pass it as functions.
package prompt
