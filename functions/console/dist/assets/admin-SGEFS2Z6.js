import{a,b,c,d}from"./chunk-CJL5PBVS.js";import"./chunk-C5KUZB7F.js";import"./chunk-EDTUUDRT.js";export{d as Audit,a as Playground,c as Section,b as Settings};
