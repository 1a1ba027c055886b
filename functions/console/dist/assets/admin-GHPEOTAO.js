import{a,b,c,d}from"./chunk-SVFRZHC5.js";import"./chunk-U5VNE6OM.js";import"./chunk-6MKFEEW5.js";import"./chunk-UKRAJTI3.js";export{d as Audit,a as Playground,c as Section,b as Settings};
