import{a,b,c,d}from"./chunk-OORE6WY6.js";import"./chunk-JDTLEFB5.js";import"./chunk-MAXAMLDP.js";import"./chunk-FTZ6SJ2H.js";export{d as Audit,a as Playground,c as Section,b as Settings};
