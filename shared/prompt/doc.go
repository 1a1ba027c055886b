// Package prompt contains saved prompts: their stored forms with their limits, the template
// language, and how versions are named. It compiles a version once, so that rendering does not
// parse the template again. The loader cache of package resource stores the result:
//
//	resource.LoadVersion(ctx, view, scope, prompt.KindPrompt, id, n, prompt.DecodePrompt)
//
// The language is Mustache, as in mustache.js, without HTML escaping and without other
// delimiters, and with two kinds of partials: {{>slug}} is a saved one, optionally of a version
// ({{>slug@5}}, {{>slug@latest}}); {{>>name}} is one that the caller sends as a variable.
// Rendering is limited in output and depth.
//
// Do not add HTTP, calls of models, or lookups of records. Callers do that and pass it as
// functions.
package prompt
