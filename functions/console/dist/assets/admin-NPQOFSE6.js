import{a,b,c,d}from"./chunk-MDLPSFTJ.js";import"./chunk-Y63CSNYH.js";import"./chunk-FTZ6SJ2H.js";export{d as Audit,a as Playground,c as Section,b as Settings};
