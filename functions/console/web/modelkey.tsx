// What pages that call models and tools have in common. It is held in the memory of the tab,
// because prompts and keys must not be in an address.
import { useState } from "preact/hooks";
import { Failure } from "./api";

// begun is what the playground starts with.
let begun: { model?: string; provider?: string; message?: string } = {};
export const startWith = (of: typeof begun) => { begun = of; };
export const takeStart = () => { const of = begun; begun = {}; return of; };

// modelKey is a workspace key for calls of models. It is held in the memory of the tab.
let modelKey = "";
export function keyForModels(): string {
  if (!modelKey) throw new Failure(400, "no_key", "Enter a workspace key.", "model-key", "");
  return modelKey;
}
export function ModelKey({ id = "model-key" }: { id?: string }) {
  const [, typed] = useState(modelKey);
  return <div class="field"><label for={id}>Workspace key</label><input id={id} type="password" autocomplete="off" value={modelKey} onInput={(e: any) => { modelKey = e.target.value.trim(); typed(modelKey); }} />
    <small>Models are called with a key of a workspace, so that its limits apply. It stays in the memory of this tab.</small></div>;
}
