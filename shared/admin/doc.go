// Package admin is the engine of the administration API. A family of routes is
// a description, a Go value: routes with their scopes, their place (workspace or
// organisation), their query and body fields, what the audit log calls them, and
// a function. From it come routing, authorisation, validation with all field
// errors at once, paging, three-state updates, sealed secrets, masking, audit
// records in the transaction of the change, and the OpenAPI 3.1 document.
//
// A call goes: route, caller, scope, body (strict JSON), place, role, fields,
// Do. Refusals of a known caller are one answer (Denied), so that they do not
// tell what exists.
//
// To add a family of stored resources (functions/configs is the example):
//
//  1. The stored form T, its kind and its Validate go to the room that uses it.
//  2. In functions/<family>, New(deps) returns admin.Family{Name, Doc, Routes}.
//  3. Describe it: col := &admin.Collection[T]{Kind, Object, Path, Scope, Where,
//     Missing, List, Slugs}; style per family is in the reference, sections 1.3-1.6.
//  4. Fields: one Field per body member, named as in T's JSON. Column for name,
//     slug, status and tags; Secret, Fixed, CreateOnly, Merge, Convert as needed.
//  5. Check calls T's Validate. Before/After hooks stage further rows: tx.Use for
//     references, tx.Due for dates, tx.CreateCredential for keys. They may run twice.
//  6. Decorate adds what is not stored (usage); Created, Updated, Single and
//     List.Envelope shape the answers, with their schemas beside them.
//  7. Custom actions are Routes of their own: col.FindIn inside c.Change.
//  8. Tests: admintest.Build, CheckFamily, ForeignIsMissing, BadBodies, then the
//     family's own rules as tables over House.Do.
//  9. Register New in the assembly of the administration; nothing else.
//  10. What must not come in here: a family's rule. What must not be in a family:
//     parsing, paging, authorisation, auditing.
package admin
